"""`assay policies`."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from scanner.cli.flags.database import ClusterNameOption, DbOption, open_reader_at
from scanner.cli.flags.stored_scan import LAST, AtOption, ScanOption, find_stored_scan
from scanner.cli.terminal.stdout import table
from scanner.config.current import get_settings
from scanner.posture.severity import Severity

if TYPE_CHECKING:
    from scanner.model.policy import Binding
    from scanner.model.scans.scan import PolicyRecord
    from scanner.posture.severity import Description


class PolicyOrder(StrEnum):
    """The orders of the list: by name, the worst severity first, or by category."""

    NAME = "name"
    SEVERITY = "severity"
    CATEGORY = "category"


_NO_POLICIES = (
    "The scan found no policies. Add some with -f PATH, or check that the scanner may list the cluster's policies."
)


def command(
    scan: ScanOption = LAST,
    sort: Annotated[PolicyOrder, typer.Option("--sort", help="Order of the list.")] = PolicyOrder.NAME,
    min_severity: Annotated[
        Severity | None,
        typer.Option("--min-severity", help="Only policies of this severity or a worse one.", show_default=False),
    ] = None,
    at: AtOption = "",
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """List the policies of a stored scan with their severity, auditability, bindings and number of matched objects."""
    from scanner.posture.severity import describe
    from scanner.report.text.titles import auditability

    posture = get_settings()

    with open_reader_at(db) as store:
        record = find_stored_scan(store, scan, cluster_name, at)
    if not record.policies:
        sys.stderr.write(f"{_NO_POLICIES}\n")
        return
    described = [(used, describe(used.policy, posture.descriptions)) for used in record.policies]
    table(
        (
            *("POLICY", "SEVERITY", "AUDITABILITY", "FAILURE POLICY", "BINDINGS", "MATCHED", "SOURCE"),
            "CATEGORY",
            "TITLE",
            "VENDOR",
        ),
        (
            (
                policy_record.policy.name,
                str(description.severity),
                auditability(policy_record.reading.classes),
                policy_record.policy.failure_policy,
                ", ".join(map(_describe_binding, policy_record.bindings)) or "none: never evaluated",
                _count_matched(policy_record),
                policy_record.policy.source,
                description.category,
                description.title,
                _describe_vendor(policy_record),
            )
            for policy_record, description in _sort_policies(described, sort)
            if min_severity is None or description.severity.at_least(min_severity)
        ),
    )


def _sort_policies(
    described: list[tuple[PolicyRecord, Description]], sort: PolicyOrder
) -> list[tuple[PolicyRecord, Description]]:
    match sort:
        case PolicyOrder.NAME:
            return described
        case PolicyOrder.SEVERITY:
            return sorted(described, key=lambda pair: pair[1].severity.rank)
        case PolicyOrder.CATEGORY:
            return sorted(described, key=lambda pair: (pair[1].category, pair[1].severity.rank))
        case _ as never:
            assert_never(never)


def _describe_binding(binding: Binding) -> str:
    from scanner.report.text.titles import name_actions

    actions = f" ({'+'.join(name_actions(binding.actions))})" if binding.actions else ""
    return f"{binding.name}{actions}"


def _describe_vendor(policy_record: PolicyRecord) -> str:
    """The vendor that installed a policy, and the mark that states it; an empty text for a policy without a mark."""
    from scanner.posture.vendors import find_vendor

    vendor = find_vendor(policy_record.policy.manifest)
    return f"{vendor.name} ({vendor.mark})" if vendor else ""


def _count_matched(policy_record: PolicyRecord) -> str:
    return str(policy_record.matched) if policy_record.bindings else "-"

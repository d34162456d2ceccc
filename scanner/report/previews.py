"""The checks of the bindings that `--assume-bound` added: they are no violations, because nothing is in force."""

from __future__ import annotations

from collections.abc import Mapping

from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.scan import ScanRecord
from scanner.report.counts import Counts, counts_by


def previews_of(record: ScanRecord) -> Mapping[PolicyKey, Counts]:
    """The checks of assumed bindings, by policy."""
    assumed = _assumed(record)
    return (
        counts_by(record.tallies, lambda key: key.policy_key if key.binding_key in assumed else None) if assumed else {}
    )


def previews_in_namespaces(record: ScanRecord) -> Mapping[str, Counts]:
    """The checks of assumed bindings, by namespace."""
    assumed = _assumed(record)
    return (
        counts_by(record.tallies, lambda key: key.namespace if key.binding_key in assumed else None) if assumed else {}
    )


def _assumed(record: ScanRecord) -> set[BindingKey]:
    return {binding.key for used in record.policies for binding in used.bindings if binding.assumed}

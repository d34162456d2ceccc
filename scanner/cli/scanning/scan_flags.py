"""The flags of `assay scan`, in the order of its help, and the options of a scan that follow from them."""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.connection import Connection, RequestLimits
from scanner.cli.flags.database import HistoryFlags
from scanner.cli.flags.flag_group import FlagGroup
from scanner.cli.flags.fleet import FleetFlags
from scanner.cli.flags.gates import GateFlags
from scanner.cli.flags.kept_labels import KeptKeyFlags
from scanner.cli.flags.kyverno import KyvernoFlags
from scanner.cli.flags.manifests import ManifestFlags
from scanner.cli.flags.pod_security import PodSecurityFlags
from scanner.cli.flags.report_formats import ControlsOption, ReportFlags
from scanner.cli.flags.rights import RightsScope
from scanner.cli.flags.scope import PolicyFlags, ScopeFlags
from scanner.cli.flags.screen import ScreenFlags
from scanner.cli.flags.second_opinion import SecondOpinionFlags
from scanner.cli.flags.simulated_request import RequestFlags
from scanner.cli.flags.snapshot import SnapshotFlags
from scanner.cli.flags.waivers import WaiverFlags
from scanner.cli.scanning.command_line import mask_command_line
from scanner.cli.scanning.conclusion import CompletenessFlags, MessageFlags
from scanner.cli.scanning.inputs import read_policy_files
from scanner.cli.scanning.metrics_push import PushFlags
from scanner.config.current import describe_configuration, get_settings
from scanner.config.values import parse_assumption, parse_seconds

if TYPE_CHECKING:
    from scanner.cli.scanning.inputs import PolicyFiles
    from scanner.documents.fleet import Member
    from scanner.model.population import KeptKeys
    from scanner.model.scans.method import Method
    from scanner.scan.options import Options

_WEEK: Final = 7 * 24 * 3600
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        max=64,
        metavar="N",
        help="Number of evaluation processes. Default: one per core, at most 8; 1 starts no other process.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFlags(FlagGroup):
    """The flags of `assay scan`. Help, configuration and completion list them in this order."""

    manifests: ManifestFlags
    scope: ScopeFlags
    policies: PolicyFlags
    kyverno: KyvernoFlags
    pod_security: PodSecurityFlags
    request: RequestFlags
    connection: Connection
    limits: RequestLimits
    fleet: FleetFlags
    workers: WorkersOption = None
    second_opinion: SecondOpinionFlags
    min_coverage: Annotated[
        float,
        typer.Option(
            "--min-coverage",
            min=0,
            max=100,
            metavar="PERCENT",
            help="Exit with code 0 instead of 3 if at least this share of the kinds was listed completely.",
        ),
    ] = 100
    kept: KeptKeyFlags
    waivers: WaiverFlags
    reports: ReportFlags
    controls: ControlsOption = ()
    history: HistoryFlags
    snapshot: SnapshotFlags
    completeness: CompletenessFlags
    gates: GateFlags
    push: PushFlags
    screen: ScreenFlags
    messages: MessageFlags

    @property
    def run_name(self) -> str:
        """The name of the run before its cluster is known; empty if no flag names the cluster."""
        return self.history.cluster_name or self.connection.context or self.manifests.place

    @property
    def rights(self) -> RightsScope:
        """The flags that decide which rights the scan needs."""
        return RightsScope(
            self.scope.namespaces,
            self.scope.skip_kinds,
            self.policies.files,
            self.policies.no_cluster_policies,
            self.kyverno.kyverno_filters,
            self.kyverno.kyverno_version,
            self.waivers.waivers_namespace,
            self.pod_security,
        )

    def of_member(self, member: Member) -> ScanFlags:
        """The same flags for one cluster of a fleet."""
        return replace(
            self,
            connection=replace(self.connection, kubeconfig=member.kubeconfig, context=member.context),
            history=replace(self.history, cluster_name=member.name),
        )


def read_options(context: typer.Context, flags: ScanFlags) -> tuple[Options, PolicyFiles]:
    """The options of a scan, and the policy files that it reads.

    Raises UsageError for a value that a flag rejects, and for policy files with an error.
    """
    from scanner.cluster.yaml import load
    from scanner.policies.kyverno.family import KyvernoOptions
    from scanner.policies.language import with_options
    from scanner.scan.options import Options

    kept = flags.kept.keys(get_settings().owners)
    scope = flags.pod_security.narrow(flags.scope.scope(flags.request.operation.value))
    user = flags.request.requester()
    network = flags.kyverno.network()
    method = _describe_method(context, flags, kept)
    silence = _find_silence(flags.limits)
    policy_files = read_policy_files(flags.policies.files)
    kyverno = KyvernoOptions(
        compat=flags.kyverno.compat,
        parse=load,
        network=network,
        configuration=flags.kyverno.configuration(),
        version=flags.kyverno.version(),
    )
    options = Options(
        scope=scope,
        manifests=policy_files.manifests,
        definitions=policy_files.kinds,
        outside=policy_files.outside,
        cluster_policies=not flags.policies.no_cluster_policies,
        derived_policies=not flags.policies.no_cluster_policies,
        assume_bound=tuple(map(parse_assumption, flags.policies.assume_bound)),
        user=user,
        languages=with_options(kyverno, flags.pod_security.language()),
        kept_keys=kept,
        method=method,
        silence=silence,
        allow_empty=flags.completeness.allow_empty,
        restored=flags.history.restored_cluster,
        accept_damage=flags.history.accept_damage,
    )
    return options, policy_files


def _describe_method(context: typer.Context, flags: ScanFlags, kept: KeptKeys) -> Method:
    """The circumstances of a scan that only the command line knows; the scan adds its user and its workers."""
    from scanner.model.population import DEFAULT_KEYS
    from scanner.model.scans.method import Method

    return Method(
        host=socket.gethostname(),
        command_line=mask_command_line(context.obj or (), context.command.params),
        kyverno_compat=flags.kyverno.compat,
        network=flags.kyverno.allow_network,
        network_to=flags.kyverno.allow_network_to,
        chunk_size=0 if flags.manifests.source else flags.limits.chunk_size,
        policy_files=tuple(map(str, flags.policies.files)),
        without_cluster_policies=flags.policies.no_cluster_policies,
        kept_labels=tuple(sorted(kept.labels - DEFAULT_KEYS.labels)),
        configuration=describe_configuration(),
    )


def _find_silence(limits: RequestLimits) -> int:
    """The seconds without a beat after which a scan that was killed is given up: a request may take as long as half of them."""
    from scanner.model.scans.scan import SILENCE

    return max(SILENCE, 2 * round(min(parse_seconds(limits.request_timeout, "--request-timeout") or 0, _WEEK)))

"""`assay preview`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.connection import DEFAULT_LIMITS, Connection, RequestLimits
from scanner.cli.flags.flag_group import FlagGroup, with_flag_groups
from scanner.cli.flags.kept_labels import KeptKeyFlags
from scanner.cli.flags.kyverno import KyvernoFlags
from scanner.cli.flags.pod_security import PodSecurityFlags
from scanner.cli.flags.scope import POLICIES, SCOPE, KindsOption, NamespacesOption, SkipKindsOption, make_scope
from scanner.cli.flags.simulated_request import RequesterFlags
from scanner.cli.scanning.inputs import read_policy_files, reject_stdin_twice
from scanner.cli.scanning.scan_flags import WorkersOption
from scanner.cli.terminal.progress import Progress
from scanner.cli.terminal.stdout import QuietOption, sentences, standard_output
from scanner.config.current import get_settings
from scanner.config.values import parse_kubernetes_version, parse_namespace_labels
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.model.policy import Action
    from scanner.preview.asked_requests import RequestWriter
    from scanner.preview.rule_change import RuleChange
    from scanner.preview.rule_preview import PreviewResult
    from scanner.report.preview.document import PreviewDocument
    from scanner.report.text.printing import Command as NextCommand
    from scanner.scan.documents import FilePlace
    from scanner.scan.edges import Cluster
    from scanner.scan.options import Options

EPILOG: Final = (
    "Examples: `assay preview --action limits=Deny` · `assay preview -f new-policy.yaml --bind new-policy` · "
    "`assay preview -f policies/ --against nightly.snapshot -o markdown --fail-on newly-denied`. "
    "Exit codes: 0 compared · 1 a --fail-on gate failed, or the API server decides otherwise · 2 usage or configuration · 3 incomplete: something could not be compared · "
    "4 could not run."
)
_LIVE: Final = "live"
_FAILED: Final = 1
_INCOMPLETE: Final = 3


class PreviewForm(StrEnum):
    """The forms of a preview."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


class ControllerUser(StrEnum):
    """The users of the requests of controllers: each its own, or one for all (`--use-service-account-credentials=false`)."""

    SERVICE_ACCOUNTS = "service-accounts"
    CONTROLLER_MANAGER = "controller-manager"


class PreviewGroup(StrEnum):
    """The parts of a preview in Markdown."""

    OWNER = "owner"


class PreviewGate(StrEnum):
    """The differences that fail a preview."""

    NEWLY_DENIED = "newly-denied"
    NEWLY_WARNED = "newly-warned"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFlags(FlagGroup):
    """The change of rules to preview."""

    files: Annotated[
        tuple[Path, ...],
        typer.Option(
            "-f",
            "--policies",
            metavar="PATH",
            help="Policies, bindings, params and Namespaces that replace those of the same name (repeatable).",
            rich_help_panel=POLICIES,
        ),
    ] = ()
    bind: Annotated[
        tuple[str, ...],
        typer.Option(
            "--bind",
            metavar="POLICY[=ACTIONS]",
            help="Put a policy into force with these actions: Deny, Warn, Audit. Default: Deny (repeatable).",
            rich_help_panel=POLICIES,
        ),
    ] = ()
    actions: Annotated[
        tuple[str, ...],
        typer.Option(
            "--action",
            metavar="BINDING=ACTIONS",
            help="Set the actions of a binding, such as limits=Deny,Warn (repeatable).",
            rich_help_panel=POLICIES,
        ),
    ] = ()
    without: Annotated[
        tuple[str, ...],
        typer.Option(
            "--without",
            metavar="[KIND/]NAME",
            help="Remove the policies and bindings of this name (repeatable).",
            rich_help_panel=POLICIES,
        ),
    ] = ()
    params: Annotated[
        tuple[Path, ...],
        typer.Option(
            "--param",
            metavar="FILE",
            help="Params that replace those of the same name (repeatable).",
            rich_help_panel=POLICIES,
        ),
    ] = ()
    namespace_label: Annotated[
        tuple[str, ...],
        typer.Option(
            "--namespace-label",
            metavar="NS=KEY=VALUE",
            help="Set a label of a namespace, such as shop=pod-security.kubernetes.io/enforce=baseline (repeatable).",
            rich_help_panel=POLICIES,
        ),
    ] = ()
    version: Annotated[
        str,
        typer.Option(
            "--kubernetes-version",
            metavar="VERSION",
            help="Apply the rules of this Kubernetes release after the change.",
            rich_help_panel=POLICIES,
            show_default=False,
        ),
    ] = ""

    def change(self) -> RuleChange:
        """The change. Raises UsageError for files that cannot be read, for invalid values, and if nothing is to be changed."""
        from scanner.preview.rule_change import RuleChange

        files, params = read_policy_files(self.files), read_policy_files(self.params)
        if files.definitions or params.definitions:
            raise UsageError("-f: a CustomResourceDefinition is no rule: leave it out")
        change = RuleChange(
            manifests=(*files.manifests, *params.manifests),
            params=frozenset(each.source for each in params.manifests),
            bound=_parse_all_actions("--bind", self.bind, "Deny"),
            actions=_parse_all_actions("--action", self.actions),
            without=tuple(dict.fromkeys(self.without)),
            namespace_labels=parse_namespace_labels(self.namespace_label),
            version=parse_kubernetes_version(self.version),
        )
        if not change:
            raise UsageError(
                "nothing is changed: name files of policies with -f, or use --bind, --action, --without, --param, "
                "--namespace-label or --kubernetes-version"
            )
        return change


def _parse_all_actions(flag: str, texts: Sequence[str], default: str = "") -> dict[str, tuple[Action, ...]]:
    """The actions of each name. Raises UsageError as `_parse_actions` does, and for other actions of one name."""
    actions: dict[str, tuple[Action, ...]] = {}
    for text in texts:
        name, named = _parse_actions(flag, text, default)
        if actions.setdefault(name, named) != named:
            raise UsageError(f"{flag} {text}: {name} has other actions already: {','.join(actions[name])}")
    return actions


def _parse_actions(flag: str, text: str, default: str = "") -> tuple[str, tuple[Action, ...]]:
    """The name and the actions of NAME=ACTIONS. Raises UsageError for another text, and for actions that exclude each other."""
    from scanner.model.policy import WRITTEN_ACTIONS

    name, _, written = text.partition("=")
    named = {each.strip().capitalize() for each in (written or default).split(",")}
    if not name or not named <= set(WRITTEN_ACTIONS):
        raise UsageError(f"{flag} {text}: write NAME=ACTIONS; the actions are {', '.join(WRITTEN_ACTIONS)}")
    if {"Deny", "Warn"} <= named:
        raise UsageError(f"{flag} {text}: the API admits no binding with both Deny and Warn")
    return name, tuple(action for action in WRITTEN_ACTIONS if action in named)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewFlags(FlagGroup):
    """The flags of `assay preview`."""

    change: ChangeFlags = field(default_factory=ChangeFlags)
    against: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="live|SNAPSHOT|PATH",
            help="The cluster: that of the kubeconfig, a snapshot, or files that stand for a cluster.",
            rich_help_panel=SCOPE,
        ),
    ] = _LIVE
    namespaces: NamespacesOption = ()
    kinds: KindsOption = ()
    skip_kinds: SkipKindsOption = ()
    kyverno: KyvernoFlags = field(default_factory=KyvernoFlags)
    pod_security: PodSecurityFlags = field(default_factory=PodSecurityFlags)
    as_user: RequesterFlags = field(default_factory=RequesterFlags)
    connection: Connection = field(default_factory=Connection)
    limits: RequestLimits = DEFAULT_LIMITS
    workers: WorkersOption = None
    controllers_as: Annotated[
        ControllerUser,
        typer.Option(
            "--controllers-as",
            help="User of the requests of controllers: their service accounts, or system:kube-controller-manager.",
        ),
    ] = ControllerUser.SERVICE_ACCOUNTS
    ask_server: Annotated[
        bool,
        typer.Option(
            "--ask-server",
            help="Also send the requests that would be refused, and the pods of templates, to the API server as dry runs, and compare. "
            "The API server answers by its present rules: it cannot be asked about the change. Changes nothing, but needs the "
            "permissions to write, or to impersonate the controllers.",
        ),
    ] = False
    by: Annotated[
        PreviewGroup | None,
        typer.Option("--by", help="With -o markdown: a text for each owner.", show_default=False),
    ] = None
    output: Annotated[PreviewForm, typer.Option("-o", "--output", help="Output format.")] = PreviewForm.TABLE
    fail_on: Annotated[
        tuple[PreviewGate, ...],
        typer.Option(
            "--fail-on",
            metavar="GATE",
            help="Exit with code 1 if an object would be newly denied (newly-denied), newly denied or warned of (newly-warned), "
            "or if anything would change (changed; repeatable).",
            show_default=False,
        ),
    ] = ()
    quiet: QuietOption = False

    def arguments(self) -> Iterator[str]:
        """The flags that decide what is compared, and their values."""
        change, user, connection = self.change, self.as_user, self.connection
        values = {
            "-f": change.files,
            "--bind": change.bind,
            "--action": change.actions,
            "--without": change.without,
            "--param": change.params,
            "--namespace-label": change.namespace_label,
            "--kubernetes-version": [change.version],
            "--against": [self.against] if self.against != _LIVE else [],
            "-n": self.namespaces,
            "--kind": self.kinds,
            "--skip-kind": self.skip_kinds,
            "--as-user": [user.user],
            "--as-user-group": user.user_groups,
            "--as-user-uid": [user.user_uid],
            "--kubeconfig": [connection.kubeconfig],
            "--context": [connection.context],
        }
        for flag, texts in values.items():
            for text in filter(None, map(str, texts)):
                yield from (flag, text)
        if self.controllers_as is not ControllerUser.SERVICE_ACCOUNTS:
            yield from ("--controllers-as", self.controllers_as.value)
        yield from ["--ask-server"] if self.ask_server else []
        yield from self.pod_security.arguments()

    def reject_contradictions(self) -> None:
        """Raise UsageError for flags that exclude each other."""
        if self.by and self.output is not PreviewForm.MARKDOWN:
            raise UsageError("--by owner needs -o markdown")
        if self.ask_server and self.against != _LIVE:
            raise UsageError("--ask-server needs a live cluster: leave out --against")
        if self.ask_server and (self.as_user.user_uid or self.as_user.user_extra):
            raise UsageError("--ask-server impersonates a user and groups: leave out --as-user-uid and --as-user-extra")
        reject_stdin_twice([*self.change.files, *self.change.params, Path(self.against)])

    def options(self) -> Options:
        """The options of the rules. Raises UsageError for values that a flag rejects."""
        from scanner.cluster.yaml import load
        from scanner.policies.kyverno.family import KyvernoOptions
        from scanner.policies.language import with_options
        from scanner.scan.options import Options

        scope = make_scope(namespaces=self.namespaces, kinds=self.kinds, skip_kinds=self.skip_kinds)
        kyverno = KyvernoOptions(
            compat=self.kyverno.compat,
            parse=load,
            network=self.kyverno.network(),
            configuration=self.kyverno.configuration(),
            version=self.kyverno.version(),
        )
        return Options(
            self.pod_security.narrow(scope),
            user=self.as_user.requester(),
            languages=with_options(kyverno, self.pod_security.language()),
            kept_keys=KeptKeyFlags().keys(get_settings().owners),
            allow_empty=True,
        )


@with_flag_groups
def command(*, flags: PreviewFlags) -> None:
    """Show what a change of policies, bindings, params or namespace labels would change for the objects of a cluster."""
    from scanner.preview.rule_change import locate_fields
    from scanner.report.preview.document import PreviewDocument

    flags.reject_contradictions()
    result = _preview(flags, flags.change.change())
    result = replace(result, causes=locate_fields(result.causes, _find_lines))
    _print(PreviewDocument(result, by_owner=flags.by is not None), flags)
    raise typer.Exit(_find_exit_code(result, flags.fail_on))


def _find_lines(place: FilePlace, paths: Sequence[str]) -> Mapping[str, int]:
    """The lines of fields of a document; none for standard input."""
    from scanner.cluster.files.field_lines import WantedLines, find_field_lines

    if place.file in ("", "-"):
        return {}
    return next(find_field_lines(Path(place.file), [WantedLines(place.line, place.items, paths)]))


def _preview(flags: PreviewFlags, change: RuleChange) -> PreviewResult:
    from scanner.posture.owners import Owners
    from scanner.preview.rule_preview import preview
    from scanner.scan.workers.cores import count_cores
    from scanner.scan.workers.pool import FORK_AFTER_BYTES
    from scanner.scan.workers.process import return_freed_memory

    return_freed_memory()
    with ExitStack() as stack, Progress(quiet=flags.quiet) as progress:
        cluster, options, writer = _open_cluster(flags, stack)
        result = preview(
            cluster,
            change,
            options,
            datetime.now(UTC),
            owners=Owners(get_settings().owners),
            as_manager=flags.controllers_as is ControllerUser.CONTROLLER_MANAGER,
            writer=writer,
            progress=progress,
            workers=flags.workers or count_cores(),
            fork_after_bytes=0 if flags.workers else FORK_AFTER_BYTES,
        )
        progress.finish()
    return result


def _open_cluster(flags: PreviewFlags, stack: ExitStack) -> tuple[Cluster, Options, RequestWriter | None]:
    """The cluster, before any request, the options, and what asks the API server, if the user names it.

    A snapshot is closed with the stack. Raises UsageError and ClusterError.
    """
    options = flags.options()
    if flags.against == _LIVE:
        live = flags.connection.cluster(flags.limits)
        return live, options, live.dry_runs() if flags.ask_server else None
    from scanner.cli.scanning.inputs import list_policies_among
    from scanner.cli.scanning.snapshots import open_snapshot, restore_request, restore_rules
    from scanner.cluster.files.snapshot import SnapshotCluster
    from scanner.cluster.snapshots.archive import is_snapshot

    path = Path(flags.against)
    if is_snapshot(path):
        replayed = open_snapshot(path, kubernetes_version="")
        stack.callback(replayed.close)
        options = restore_rules(options, flags.kyverno, flags.pod_security, replayed.options)
        return replayed, restore_request(options, replayed.options), None
    files = SnapshotCluster([path], languages=options.languages)
    return files, replace(options, manifests=list_policies_among(files), cluster_policies=False), None


def _print(document: PreviewDocument, flags: PreviewFlags) -> None:
    from scanner.report.html import preview_page
    from scanner.report.preview import json, markdown, table

    if flags.output is PreviewForm.TABLE:
        from scanner.cli.terminal.explanation import show
        from scanner.report.text.screen import Screen

        sentences(table.list_lines(document), hang=2)
        show([*table.list_sentences(document), *_list_next(document.result, flags)], Screen())
        return
    with standard_output() as out:
        if flags.output is PreviewForm.JSON:
            out.writelines(json.render(document))
        else:
            out.write((markdown if flags.output is PreviewForm.MARKDOWN else preview_page).render(document))


def _list_next(result: PreviewResult, flags: PreviewFlags) -> Iterator[NextCommand]:
    """The same preview in another form; nothing without a difference, and where a flag may have a value that is not shown."""
    from scanner.cli.terminal.program import find_program
    from scanner.report.text.printing import Command

    if flags.as_user.user_extra or not (result.objects or result.workloads):
        return
    words = [find_program(), "preview", *map(shlex.quote, flags.arguments()), "-q -o markdown"]
    by, purpose = (["--by owner"], "a text for each team") if result.workloads else ([], "the preview as a comment")
    yield Command(" ".join([*words, *by]), purpose)


def _find_exit_code(result: PreviewResult, gates: Sequence[PreviewGate]) -> int:
    """Code 3 has priority: what could not be compared may be denied, too."""
    from scanner.preview.differences import Difference

    if not result.is_complete:
        return _INCOMPLETE
    denied = {Difference.NEWLY_DENIED, Difference.PODS_NEWLY_DENIED}
    failing = {
        PreviewGate.NEWLY_DENIED: denied,
        PreviewGate.NEWLY_WARNED: {*denied, Difference.NEWLY_WARNED},
        PreviewGate.CHANGED: set(Difference),
    }
    found = {one.difference for each in result.objects for one in each.difference.policies}
    found |= {Difference.NEWLY_DENIED for each in result.workloads if each.risks}
    return _FAILED if result.differs or any(found & failing[gate] for gate in gates) else 0

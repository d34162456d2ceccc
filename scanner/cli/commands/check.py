"""`assay check`."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.connection import Connection, RequestLimits, RequestTimeoutOption
from scanner.cli.flags.flag_group import FlagGroup, with_flag_groups
from scanner.cli.flags.kyverno import FiltersOption, KyvernoVersionOption, read_kyverno_configuration
from scanner.cli.flags.manifests import KubernetesVersionOption, NamespaceLabelOption
from scanner.cli.flags.pod_security import PodSecurityFlags
from scanner.cli.flags.simulated_request import RequesterFlags
from scanner.cli.scanning.inputs import reject_stdin_twice
from scanner.cli.terminal.stdout import sentences, standard_output
from scanner.config.values import parse_kubernetes_version, parse_kyverno_version, parse_namespace_labels
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.cluster.files.manifests import FileDocument, UnreadDocument
    from scanner.cluster.overlay import Base
    from scanner.cluster.requests.session import ApiSession
    from scanner.preview import CheckResult
    from scanner.preview.server_answers import DryRunApplier
    from scanner.report.check.document import CheckDocument
    from scanner.scan.options import Options

EPILOG: Final = (
    "Examples: `assay check -f app.yaml` · `kustomize build . | assay check -f - -n payments` · "
    "`assay check -f manifests/ --against saved-cluster/ -o sarif`. "
    "Exit codes: 0 nothing would be refused · 1 an object, or its pods, would be refused, or the API server decides otherwise · "
    "2 usage or configuration · 3 something could not be decided · 4 could not run."
)
LIVE: Final = "live"
BUILT_IN: Final = (
    "LimitRanger",
    "ServiceAccount",
    "Priority",
    "DefaultTolerationSeconds",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "RuntimeClass",
    "DefaultIngressClass",
)
"""The plug-ins that are evaluated: `scanner.preview.plugins.BUILT_IN`, whose import would delay every command."""
_GARBAGE = 200_000
"""New objects between two collections of garbage: fewer are made for some manifests, nearly all by imports, and stay until the end."""
_REFUSED = 1
_UNDECIDED = 3


class CheckForm(StrEnum):
    """The forms of the answer."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    SARIF = "sarif"
    JUNIT = "junit"


_FILE_FORMS: Final = tuple(form.value for form in CheckForm if form is not CheckForm.TABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFlags(FlagGroup):
    """The flags of `assay check`."""

    files: Annotated[
        tuple[Path, ...],
        typer.Option(
            "-f", "--filename", metavar="PATH", help="Manifests: a file, a folder, or - for stdin (repeatable)."
        ),
    ] = ()
    against: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="live|PATH",
            help="The cluster whose policies decide: that of the kubeconfig, files that stand for a cluster, or a snapshot.",
        ),
    ] = LIVE
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", metavar="NAME", help="Namespace of manifests that name none.")
    ] = "default"
    output: Annotated[CheckForm, typer.Option("-o", "--output", help="Output format.")] = CheckForm.TABLE
    exports: Annotated[
        tuple[str, ...],
        typer.Option(
            "--export", metavar="FORMAT=FILE", help="Also write the answer into a file, in a format of -o (repeatable)."
        ),
    ] = ()
    ask_server: Annotated[
        bool,
        typer.Option(
            "--ask-server",
            help="Also send each manifest to the API server as a dry run of a server-side apply, and compare. Changes nothing, "
            "but needs the permissions to create and patch the objects.",
        ),
    ] = False
    allow_unjudged: Annotated[
        bool, typer.Option("--allow-unjudged", help="Exit with code 0 although something is undecided.")
    ] = False
    version: KubernetesVersionOption = ""
    namespace_label: NamespaceLabelOption = ()
    disabled_plugins: Annotated[
        tuple[str, ...],
        typer.Option(
            "--disabled-plugin",
            metavar="NAME",
            help=f"Built-in admission plug-in that the API server does not run: {', '.join(BUILT_IN)} (repeatable).",
        ),
    ] = ()
    kyverno_version: KyvernoVersionOption = ""
    kyverno_filters: FiltersOption = ()
    pod_security: PodSecurityFlags = field(default_factory=PodSecurityFlags)
    as_user: RequesterFlags = field(default_factory=RequesterFlags)
    connection: Connection = field(default_factory=Connection)
    request_timeout: RequestTimeoutOption = "60s"

    def reject_contradictions(self) -> None:
        """Raise UsageError for flags that are missing, or that exclude each other."""
        if not self.files:
            raise UsageError("-f is missing: name the manifests to check, or - for standard input")
        if self.ask_server and self.against != LIVE:
            raise UsageError("--ask-server needs a live cluster: leave out --against")
        if unknown := [name for name in self.disabled_plugins if name not in BUILT_IN]:
            raise UsageError(
                f"--disabled-plugin {unknown[0]}: the plug-ins that are evaluated are {', '.join(BUILT_IN)}"
            )
        reject_stdin_twice([*self.files, Path(self.against)])

    @property
    def limits(self) -> RequestLimits:
        """The limits of requests to a live cluster."""
        return RequestLimits(self.request_timeout, kind_timeout=self.request_timeout)

    def places(self) -> dict[Path, CheckForm]:
        """The files to write, each with its format. Raises UsageError for a value that is not FORMAT=FILE."""
        parts = [text.partition("=") for text in self.exports]
        for name, _, path in parts:
            if name not in _FILE_FORMS or not path:
                raise UsageError(f"--export {name}: write FORMAT=FILE; the formats are {', '.join(_FILE_FORMS)}")
        return {Path(path).expanduser(): CheckForm(name) for name, _, path in parts}

    def options(self) -> Options:
        """The options of the rules. Raises UsageError for values that a flag rejects."""
        from scanner.model.scans.scan import Scope
        from scanner.policies.kyverno.family import KyvernoOptions
        from scanner.policies.language import with_options
        from scanner.scan.options import Options

        configuration = read_kyverno_configuration(self.kyverno_filters)
        kyverno = KyvernoOptions(configuration=configuration, version=parse_kyverno_version(self.kyverno_version))
        languages = with_options(kyverno, self.pod_security.language())
        return Options(Scope(namespaces=(self.namespace,)), user=self.as_user.requester(), languages=languages)


@with_flag_groups
def command(*, flags: CheckFlags) -> None:
    """Decide whether a cluster would admit manifests, by its own policies and with read permissions alone."""
    gc.set_threshold(_GARBAGE)
    flags.reject_contradictions()
    places = flags.places()
    documents, unread = _read_manifests(flags.files)
    opened = _open_cluster(flags, _begin(flags, documents) if flags.against == LIVE else None)
    with closing(opened):
        result = _check(opened, documents, flags.disabled_plugins)
    gaps = (item.gap for item in unread if item.other_tool is None)
    notes = (f"not checked: {each}" for each in _explain_unchecked(unread))
    document = _locate(replace(result, gaps=(*gaps, *result.gaps), notes=(*notes, *result.notes)))
    for path, form in places.items():
        _export(document, form, path)
    _print(document, flags.output)
    raise typer.Exit(_find_exit_code(document.result, allow_unjudged=flags.allow_unjudged))


def _begin(flags: CheckFlags, documents: Iterable[FileDocument]) -> ApiSession:
    """The session with a live cluster. Raises ClusterError and UsageError."""
    return flags.connection.begin((document.body for document in documents), flags.namespace, flags.limits)


def _read_manifests(paths: Sequence[Path]) -> tuple[list[FileDocument], list[UnreadDocument]]:
    """The documents of the files, and those that are not read. Raises UsageError for a missing path, and if there is no manifest."""
    from scanner.cluster.files.manifests import FileDocument, ReadFiles, stream_documents

    read = ReadFiles()
    items = [item for path in paths for item in stream_documents(path, read)]
    documents = [item for item in items if isinstance(item, FileDocument)]
    unread = [item for item in items if not isinstance(item, FileDocument)]
    if not items:
        raise UsageError(f"-f {paths[0]} has no document: check the path. Files end in .yaml, .yml or .json")
    if not documents and all(item.other_tool for item in unread):
        raise UsageError(f"-f {paths[0]} has no manifest: {_explain_unchecked(unread)[0]}")
    return documents, unread


def _explain_unchecked(unread: Iterable[UnreadDocument]) -> list[str]:
    """A sentence for each reason why files of other tools are left out, which no API server stores."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for item in unread:
        if item.other_tool:
            places[item.other_tool.why].append(item.gap.where)
    return [f"{first}{f' and {len(more)} more' if more else ''}: {why}" for why, (first, *more) in places.items()]


@dataclass(frozen=True, slots=True)
class _OpenedCluster:
    """The cluster whose rules decide, the options, and what asks the API server, if the user names it."""

    cluster: Base
    options: Options
    applier: DryRunApplier | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    close: Callable[[], None] = lambda: None


def _open_cluster(flags: CheckFlags, session: ApiSession | None) -> _OpenedCluster:
    """The cluster whose rules decide, with the session of a live one. Raises UsageError and ClusterError."""
    options = flags.options()
    if session:
        live = flags.connection.cluster(flags.limits, session)
        return _OpenedCluster(live, options, live.dry_runs() if flags.ask_server else None)
    from scanner.cli.scanning.inputs import list_policies_among
    from scanner.cluster.files.snapshot import SnapshotCluster
    from scanner.cluster.snapshots.archive import is_snapshot

    if is_snapshot(Path(flags.against)):
        return _open_snapshot(flags, options)
    cluster = SnapshotCluster(
        [Path(flags.against)],
        kubernetes_version=parse_kubernetes_version(flags.version),
        languages=options.languages,
        namespace_labels=parse_namespace_labels(flags.namespace_label),
    )
    return _OpenedCluster(cluster, replace(options, manifests=list_policies_among(cluster), cluster_policies=False))


def _open_snapshot(flags: CheckFlags, options: Options) -> _OpenedCluster:
    """The cluster of a snapshot, with the rules and at the time of its scan. Raises UsageError."""
    from scanner.cli.flags.kyverno import KyvernoFlags
    from scanner.cli.scanning.snapshots import restore_rules
    from scanner.cluster.snapshots.objects import SnapshotObjects

    snapshot = SnapshotObjects(Path(flags.against), kubernetes_version=parse_kubernetes_version(flags.version))
    kyverno = KyvernoFlags(kyverno_version=flags.kyverno_version, kyverno_filters=flags.kyverno_filters)
    options = restore_rules(options, kyverno, flags.pod_security, snapshot.options)
    return _OpenedCluster(snapshot, options, now=snapshot.started, close=snapshot.close)


def _check(opened: _OpenedCluster, documents: Sequence[FileDocument], disabled_plugins: Sequence[str]) -> CheckResult:
    from scanner.cluster.overlay import AppliedManifests, ClusterAfter
    from scanner.preview import check

    cluster, options = opened.cluster, opened.options
    bodies = (document.body for document in documents)
    after = ClusterAfter(cluster, AppliedManifests(bodies, options.languages, options.scope.namespaces[0]))
    return check(after, cluster, documents, options, opened.now, opened.applier, disabled_plugins)


def _locate(result: CheckResult) -> CheckDocument:
    """The result with the lines of the deciding fields: the files that have some are read once more."""
    from scanner.report.check.document import CheckDocument, FieldPlace, list_wanted_fields

    if not (places := list_wanted_fields(result)):
        return CheckDocument(result, {})
    from scanner.cluster.files.field_lines import WantedLines, find_field_lines

    wanted: defaultdict[str, defaultdict[tuple[int, tuple[int, ...]], list[str]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for place in places:
        wanted[place.file][place.line, place.items].append(place.path)
    lines: dict[FieldPlace, int] = {}
    for file, objects in wanted.items():
        found = find_field_lines(Path(file), [WantedLines(*key, paths) for key, paths in objects.items()])
        for (line, items), of_object in zip(objects, found, strict=True):
            lines |= {FieldPlace(file, line, items, path): number for path, number in of_object.items()}
    return CheckDocument(result, lines)


def _print(document: CheckDocument, form: CheckForm) -> None:
    """Print the answer. Raises UsageError for a format that needs files."""
    if form is CheckForm.TABLE:
        from scanner.report.check import table

        sentences(table.list_lines(document), hang=2)
        sentences(table.list_sentences(document))
        return
    written = _render(document, form)
    with standard_output() as out:
        out.write(written)


def _export(document: CheckDocument, form: CheckForm, path: Path) -> None:
    """Write the answer into a file. Raises UsageError for a format that needs files, and a file that cannot be written."""
    from scanner.report.output import text_file

    written = _render(document, form)
    with text_file(path) as out:
        out.write(written)


def _render(document: CheckDocument, form: CheckForm) -> str:
    match form:
        case CheckForm.MARKDOWN:
            from scanner.report.check.markdown import render
        case CheckForm.SARIF:
            from scanner.report.check.sarif import render
        case CheckForm.JUNIT:
            from scanner.report.check.junit import render
        case _:
            from scanner.report.check.json import render
    return render(document)


def _find_exit_code(result: CheckResult, *, allow_unjudged: bool) -> int:
    if not result.is_complete and not allow_unjudged:
        return _UNDECIDED
    return _REFUSED if result.is_refused or result.differs else 0

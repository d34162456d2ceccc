"""`assay rbac check` and `assay rbac generate`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from scanner.cli.flags.connection import Connection
from scanner.cli.flags.flag_group import with_flag_groups
from scanner.cli.flags.fleet import FleetOption
from scanner.cli.flags.kyverno import read_kyverno_configuration
from scanner.cli.flags.rights import RightsScope, make_grant_command
from scanner.cli.flags.scope import make_scope
from scanner.cli.terminal.exit_codes import COULD_NOT_RUN, NEEDS_USER, find_exit_code
from scanner.cli.terminal.program import find_program
from scanner.cli.terminal.stdout import FormOption, OutputForm
from scanner.config.values import parse_kyverno_version
from scanner.errors import AssayError, UsageError
from scanner.model.missing_right import parse_missing_right
from scanner.model.resource import ANONYMOUS

if TYPE_CHECKING:
    from scanner.cluster.live.cluster import LiveCluster
    from scanner.documents.fleet import Member
    from scanner.model.json import JsonObject
    from scanner.rbac import Permission, RequiredPermissions
    from scanner.scan.options import Options

_INCOMPLETE = 3
_WORST: Final = (COULD_NOT_RUN, NEEDS_USER, _INCOMPLETE, 0)
"""The exit codes, of which the first that occurs is that of the fleet."""
_AT_ONCE: Final = 8
"""The clusters of a fleet that are checked at once, so that those which do not answer take no time from the others."""
_MOST_NAMED: Final = 5
_UNKNOWN = "Note: not all policies could be listed, so a scan may need further permissions"
_EPILOG = "Exit codes: 0 all granted · 2 usage or configuration · 3 a scan would be incomplete · 4 could not run."

application = typer.Typer(
    help="Check or generate the RBAC permissions that a scan needs.", no_args_is_help=True, rich_markup_mode=None
)


@application.callback()
def _root() -> None:
    """Check or generate the RBAC permissions that a scan needs."""


@application.command(epilog=_EPILOG)
@with_flag_groups
def check(
    *,
    scope: RightsScope,
    connection: Connection,
    fleet: FleetOption = None,
    output: FormOption = OutputForm.TABLE,
) -> None:
    """Check which permissions a scan needs and which are missing. Lists only policies, params and namespaces.

    With --fleet, check every cluster of the file, with its kubeconfig and its context.
    """
    options = _read_options(scope)
    if fleet is not None:
        from scanner.documents.fleet import read_fleet

        raise typer.Exit(_check_fleet(read_fleet(fleet), scope, connection, options, output))
    cluster = connection.cluster()
    checked = _check(cluster, scope, options)
    if output is OutputForm.JSON:
        _print_json(_make_document(checked))
    else:
        _print_table(checked.answered, checked.needs)
        if checked.missing:
            _print_remedy(find_program(), scope, connection, cluster)
    raise typer.Exit(_INCOMPLETE if checked.missing else 0)


class _Checked(NamedTuple):
    """The permissions that a scan of a cluster needs, each with whether it is granted."""

    needs: RequiredPermissions
    answered: list[tuple[Permission, bool]]

    @property
    def missing(self) -> list[Permission]:
        """Those without which a scan is incomplete."""
        return [need for need, allowed in self.answered if not allowed and not need.optional]


def _check(cluster: LiveCluster, scope: RightsScope, options: Options) -> _Checked:
    from scanner.rbac import list_permissions

    needs = list_permissions(cluster, options, scope.waivers_namespace)
    return _Checked(needs, [(need, cluster.allows(need)) for need in needs.rights])


def _check_fleet(
    members: Sequence[Member], scope: RightsScope, connection: Connection, options: Options, output: OutputForm
) -> int:
    """Check every cluster, also after one that fails, and return the worst exit code: the first of 4, 5, 3 and 0 that occurs."""

    def check_member(member: Member) -> _Checked | AssayError:
        own = replace(connection, kubeconfig=member.kubeconfig, context=member.context)
        try:
            return _check(own.cluster(), scope, options)
        except AssayError as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(zip(members, pool.map(check_member, members), strict=True))
    codes = [_find_code(result) for _, result in results]
    if output is OutputForm.JSON:
        _print_json([{"cluster": member.name, **_make_document(result)} for member, result in results])
    else:
        from scanner.cli.terminal.stdout import table

        rows = ((member.name, str(_find_code(result)), _describe_result(result)) for member, result in results)
        table(("CLUSTER", "EXIT", "VERDICT"), rows)
    return next(code for code in _WORST if code in codes)


def _find_code(result: _Checked | AssayError) -> int:
    if isinstance(result, AssayError):
        code = find_exit_code(result)
        return code if code in _WORST else COULD_NOT_RUN
    return _INCOMPLETE if result.missing else 0


def _describe_result(result: _Checked | AssayError) -> str:
    """The result for a cluster in a line, with the first missing permissions."""
    if isinstance(result, AssayError):
        return str(result)
    names = [f"{need.verb} {_name_resource(need)}" for need in result.missing]
    more = f" and {len(names) - _MOST_NAMED} others" if len(names) > _MOST_NAMED else ""
    return _describe_missing(len(names)) + (f": {', '.join(names[:_MOST_NAMED])}{more}" if names else "")


def _describe_missing(number: int) -> str:
    return f"{_count_permissions(number)} missing" if number else "All required permissions are granted"


@application.command()
@with_flag_groups
def generate(
    *,
    scope: RightsScope,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the roles.")] = "assay",
    subject: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="SUBJECT",
            help="Also bind the roles to user:NAME, group:NAME or serviceaccount:NAMESPACE:NAME.",
            show_default=False,
        ),
    ] = "",
    for_check: Annotated[
        bool, typer.Option("--for-check", help="Print the roles that `assay check` needs instead.")
    ] = False,
    for_preview: Annotated[
        bool, typer.Option("--for-preview", help="Print the roles that `assay preview` needs instead.")
    ] = False,
    ask_server: Annotated[
        bool,
        typer.Option(
            "--ask-server",
            help="With --for-preview: print the roles of `assay preview --ask-server`, which may write and impersonate controllers.",
        ),
    ] = False,
    connection: Connection,
) -> None:
    """Print the roles that a scan needs, for exactly the kinds, params and namespaces of the bound policies."""
    import yaml

    from scanner.cli.terminal.stdout import text
    from scanner.cluster.live.rights import make_roles
    from scanner.rbac import list_check_permissions, list_permissions, list_preview_permissions

    _reject_contradictions(for_check=for_check, for_preview=for_preview, ask_server=ask_server)
    options, cluster = _read_options(scope), connection.cluster()
    if for_preview:
        needs = list_preview_permissions(cluster, options, asks_server=ask_server)
    elif for_check:
        needs = list_check_permissions(cluster, options)
    else:
        needs = list_permissions(cluster, options, scope.waivers_namespace)
    written = yaml.safe_dump_all(make_roles(needs.rights, name, subject), sort_keys=False, default_flow_style=None)
    text(written.splitlines())
    _print_gaps(needs)
    raise typer.Exit(_INCOMPLETE if needs.gaps else 0)


def _reject_contradictions(*, for_check: bool, for_preview: bool, ask_server: bool) -> None:
    """Raise UsageError for flags that exclude each other."""
    if ask_server and not for_preview:
        raise UsageError("--ask-server needs --for-preview")
    if for_check and for_preview:
        raise UsageError("--for-check and --for-preview exclude each other: run the command twice")


def _read_options(rights: RightsScope) -> Options:
    """The options of the scan. Raises UsageError."""
    from scanner.cli.scanning.inputs import read_policy_files
    from scanner.policies.kyverno.family import KyvernoOptions
    from scanner.policies.language import with_options
    from scanner.scan.options import Options

    scope = make_scope(namespaces=rights.namespaces, skip_kinds=rights.skip_kinds)
    policy_files = read_policy_files(rights.files)
    kyverno = KyvernoOptions(
        configuration=read_kyverno_configuration(rights.kyverno_filters),
        version=parse_kyverno_version(rights.kyverno_version),
    )
    return Options(
        scope,
        policy_files.manifests,
        cluster_policies=not rights.no_cluster_policies,
        derived_policies=not rights.no_cluster_policies,
        languages=with_options(kyverno),
        definitions=policy_files.kinds,
    )


def _print_table(answered: list[tuple[Permission, bool]], needs: RequiredPermissions) -> None:
    from scanner.cli.terminal.stdout import sentences, table

    table(
        ("ALLOWED", "VERB", "RESOURCE", "WHERE", "NEEDED FOR"),
        (
            (_describe_answer(need, allowed), need.verb, _name_resource(need), _name_place(need), need.why)
            for need, allowed in answered
        ),
    )
    missing = [need for need, allowed in answered if not allowed and not need.optional]
    sentences(
        [
            _describe_missing(len(missing)) + (": a scan would be incomplete" if missing else ""),
            *_explain_optional(need for need, allowed in answered if not allowed and need.optional),
            *([_UNKNOWN] if any(parse_missing_right(gap.why) for gap in needs.gaps) else []),
        ]
    )


def _print_remedy(command: str, scope: RightsScope, connection: Connection, cluster: LiveCluster) -> None:
    """The command that grants the rights; none if the server does not name the user, or if the user is the anonymous one."""
    from scanner.cli.terminal.explanation import show
    from scanner.report.text.printing import Command
    from scanner.report.text.screen import Screen

    username = cluster.requester().username
    if username not in ("", ANONYMOUS):
        grant = make_grant_command(command, scope, connection, username)
        purpose = "grant every right that the scan needs, as an administrator of the cluster"
        show([Command(grant, purpose)], Screen())


def _count_permissions(number: int) -> str:
    return f"{number} permission is" if number == 1 else f"{number} permissions are"


def _explain_optional(missing: Iterable[Permission]) -> Iterator[str]:
    """The effects of missing optional permissions, a sentence for each."""
    resources: dict[tuple[str, str], list[str]] = {}
    for need in missing:
        if need.without:
            resources.setdefault((need.without, need.verb), []).append(_name_resource(need))
    for (without, verb), names in resources.items():
        yield f"Note: without `{verb}` on {', '.join(dict.fromkeys(names))}, {without}"


def _make_document(result: _Checked | AssayError) -> JsonObject:
    """The result for a cluster, or the error that ended the check."""
    if isinstance(result, AssayError):
        return {"complete": False, "error": str(result)}
    rights: list[JsonObject] = [
        {
            "group": need.group,
            "resource": need.resource,
            "verb": need.verb,
            "namespace": need.namespace,
            "name": need.name,
            "url": need.url,
            "why": need.why,
            "optional": need.optional,
            "allowed": allowed,
        }
        for need, allowed in result.answered
    ]
    from scanner.report.text.json_text import gap_json

    return {
        "complete": not result.missing,
        "rights": rights,
        "gaps": [gap_json(gap) for gap in result.needs.gaps],
    }


def _print_json(document: JsonObject | list[JsonObject]) -> None:
    import orjson

    from scanner.cli.terminal.stdout import text

    text([orjson.dumps(document).decode()])


def _print_gaps(needs: RequiredPermissions) -> None:
    for gap in needs.gaps:
        typer.echo(f"{gap.where}: {gap.why}", err=True)


def _describe_answer(need: Permission, allowed: bool) -> str:
    return "yes" if allowed else "no (optional)" if need.optional else "NO"


def _name_resource(need: Permission) -> str:
    if need.url:
        return need.url
    resource = f"{need.resource}.{need.group}" if need.group else need.resource
    return f"{resource}/{need.name}" if need.name else resource


def _name_place(need: Permission) -> str:
    if need.url:
        return "the API server"
    return f"namespace {need.namespace}" if need.namespace else "all namespaces"

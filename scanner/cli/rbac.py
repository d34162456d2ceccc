"""`assay rbac check` and `assay rbac generate`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.connection import AsGroupsOption, AsOption, Connection, ContextOption, KubeconfigOption
from scanner.cli.filters import FiltersOption, kyverno_configuration
from scanner.cli.values import reject_empty

if TYPE_CHECKING:
    from scanner.cluster.live import LiveCluster
    from scanner.rbac import Need, Needs

_INCOMPLETE = 3
_EPILOG = "Exit codes: 0 nothing will be missing · 2 usage · 3 a scan would be incomplete · 4 could not run."

application = typer.Typer(
    help="Say which rights a scan needs, and which are missing.", no_args_is_help=True, rich_markup_mode=None
)


class Form(StrEnum):
    """How rights are shown."""

    TABLE = "table"
    JSON = "json"


NamespacesOption = Annotated[
    list[str] | None,
    typer.Option("-n", "--namespace", metavar="NAME", help="For a scan of only this namespace (repeatable)."),
]
SkipKindsOption = Annotated[
    list[str] | None,
    typer.Option("--skip-kind", metavar="KIND", help="For a scan that leaves out this kind (repeatable)."),
]
FilesOption = Annotated[
    list[Path] | None,
    typer.Option("-f", "--policies", metavar="PATH", help="Add policies and bindings from files (repeatable)."),
]
NoClusterPoliciesOption = Annotated[
    bool, typer.Option("--no-cluster-policies", help="For a scan with the policies of the files only.")
]


@application.callback()
def _root() -> None:
    """Say which rights a scan needs, and which are missing."""


@application.command(epilog=_EPILOG)
def check(
    namespaces: NamespacesOption = None,
    skip_kinds: SkipKindsOption = None,
    files: FilesOption = None,
    no_cluster_policies: NoClusterPoliciesOption = False,
    kyverno_filters: FiltersOption = None,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    as_user: AsOption = "",
    as_groups: AsGroupsOption = None,
    output: Annotated[Form, typer.Option("-o", "--output", help="How to show the rights.")] = Form.TABLE,
) -> None:
    """Tell before a scan what it will not be allowed to see. Nothing is listed but policies, params and namespaces."""
    cluster = _connected(kubeconfig, context, as_user, as_groups)
    needed = _needed(
        cluster,
        namespaces or [],
        skip_kinds or [],
        files or [],
        kyverno_filters or [],
        cluster_policies=not no_cluster_policies,
    )
    answered = [(need, cluster.allows(need)) for need in needed.rights]
    missing = [need for need, allowed in answered if not allowed and not need.optional]
    if output is Form.JSON:
        _show_json(answered, needed, complete=not missing)
    else:
        _show_table(answered)
    raise typer.Exit(_INCOMPLETE if missing else 0)


@application.command()
def generate(
    namespaces: NamespacesOption = None,
    skip_kinds: SkipKindsOption = None,
    files: FilesOption = None,
    no_cluster_policies: NoClusterPoliciesOption = False,
    kyverno_filters: FiltersOption = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The name of the roles.")] = "assay",
    subject: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="SUBJECT",
            help="Bind the roles too: to user:NAME, group:NAME or serviceaccount:NAMESPACE:NAME.",
            show_default=False,
        ),
    ] = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    as_user: AsOption = "",
    as_groups: AsGroupsOption = None,
) -> None:
    """Print the roles that a scan needs: exactly the kinds, params and namespaces of the policies that are bound now."""
    import yaml

    from scanner.cli.terminal import text
    from scanner.cluster.rights import roles

    cluster = _connected(kubeconfig, context, as_user, as_groups)
    needed = _needed(
        cluster,
        namespaces or [],
        skip_kinds or [],
        files or [],
        kyverno_filters or [],
        cluster_policies=not no_cluster_policies,
    )
    written = yaml.safe_dump_all(roles(needed.rights, name, subject), sort_keys=False, default_flow_style=None)
    text(written.splitlines())
    _warn(needed)
    raise typer.Exit(_INCOMPLETE if needed.gaps else 0)


def _connected(kubeconfig: str, context: str, as_user: str, as_groups: list[str] | None) -> LiveCluster:
    return Connection(
        kubeconfig=kubeconfig, context=context, as_user=as_user, as_groups=tuple(as_groups or ())
    ).cluster()


def _needed(
    cluster: LiveCluster,
    namespaces: list[str],
    skip_kinds: list[str],
    files: list[Path],
    kyverno_filters: list[str],
    *,
    cluster_policies: bool,
) -> Needs:
    from scanner.cli.inputs import policy_files
    from scanner.model.scan import Scope
    from scanner.rbac import needs
    from scanner.scan.options import Options

    reject_empty({"-n": namespaces, "--skip-kind": skip_kinds})
    manifests, gaps = policy_files(files)
    scope = Scope(namespaces=tuple(namespaces), skip_kinds=tuple(skip_kinds))
    configuration = kyverno_configuration(kyverno_filters)
    options = Options(scope, manifests, gaps, cluster_policies, kyverno_configuration=configuration)
    return needs(cluster, options)


def _show_table(answered: list[tuple[Need, bool]]) -> None:
    from scanner.cli.terminal import table, text

    table(
        ("ALLOWED", "VERB", "RESOURCE", "WHERE", "WHAT FOR"),
        ((_word(need, allowed), need.verb, _resource(need), _where(need), need.why) for need, allowed in answered),
    )
    missing = [need for need, allowed in answered if not allowed and not need.optional]
    text([f"{len(missing)} rights are missing: a scan would be incomplete" if missing else "A scan will miss nothing"])


def _show_json(answered: list[tuple[Need, bool]], needed: Needs, *, complete: bool) -> None:
    import orjson

    from scanner.cli.terminal import text

    rights = [
        {"group": it.group, "resource": it.resource, "verb": it.verb, "namespace": it.namespace, "name": it.name}
        | {"why": it.why, "optional": it.optional, "allowed": allowed}
        for it, allowed in answered
    ]
    gaps = [{"kind": gap.kind.value, "where": gap.where, "why": gap.why} for gap in needed.gaps]
    text([orjson.dumps({"complete": complete, "rights": rights, "gaps": gaps}).decode()])


def _warn(needed: Needs) -> None:
    for gap in needed.gaps:
        typer.echo(f"{gap.where}: {gap.why}", err=True)


def _word(need: Need, allowed: bool) -> str:
    return "yes" if allowed else "no (not vital)" if need.optional else "NO"


def _resource(need: Need) -> str:
    resource = f"{need.resource}.{need.group}" if need.group else need.resource
    return f"{resource}/{need.name}" if need.name else resource


def _where(need: Need) -> str:
    return f"namespace {need.namespace}" if need.namespace else "everywhere"

"""The commands that name and grant missing rights, with the flags of the command that lacked them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from scanner.cli.flags.connection import Connection
from scanner.cli.flags.flag_group import FlagGroup
from scanner.cli.flags.kyverno import KYVERNO_FILTERS, KYVERNO_VERSION, FiltersOption, KyvernoVersionOption
from scanner.cli.flags.pod_security import PodSecurityFlags
from scanner.cli.flags.scope import FilesOption, NamespacesOption, NoClusterPoliciesOption, SkipKindsOption
from scanner.cli.flags.waivers import WaiversNamespaceOption

_ACCOUNT: Final = re.compile(r"system:serviceaccount:([^:]+):([^:]+)")
_NO_NAME: Final = re.compile(r"[^a-z0-9.-]+")
_STDIN: Final = "-"


@dataclass(frozen=True, slots=True)
class RightsScope(FlagGroup):
    """The flags that decide which rights a scan needs, as a scan and `assay rbac` have them."""

    namespaces: NamespacesOption = ()
    skip_kinds: SkipKindsOption = ()
    files: FilesOption = ()
    no_cluster_policies: NoClusterPoliciesOption = False
    kyverno_filters: FiltersOption = ()
    kyverno_version: KyvernoVersionOption = ""
    waivers_namespace: WaiversNamespaceOption = ""
    pod_security: PodSecurityFlags = field(default_factory=PodSecurityFlags)

    def arguments(self) -> list[str]:
        """The flags and their values. Standard input can be read only once, so no flag names it."""
        files = [str(path) for path in self.files if str(path) != _STDIN]
        return [
            *_repeated("--namespace", self.namespaces),
            *_repeated("--skip-kind", self.skip_kinds),
            *_repeated("--policies", files),
            *(["--no-cluster-policies"] if self.no_cluster_policies else []),
            *_repeated(KYVERNO_FILTERS, self.kyverno_filters),
            *_repeat_flag(KYVERNO_VERSION, self.kyverno_version),
            *_repeat_flag("--waivers-namespace", self.waivers_namespace),
            *self.pod_security.arguments(),
        ]


def make_check_arguments(scope: RightsScope, connection: Connection) -> str:
    """The arguments of the command that names the missing rights of the same identity."""
    user = [*_repeat_flag("--as", connection.as_user), *_repeated("--as-group", connection.as_groups)]
    return shlex.join(["rbac", "check", *scope.arguments(), *_list_place(connection), *user])


def make_grant_command(command: str, scope: RightsScope, connection: Connection, username: str) -> str:
    """The command by which an administrator grants a user every right that a scan needs.

    An identity that impersonates the user is the administrator; otherwise the credentials are those of the user, and the command
    names none.
    """
    place = _list_place(connection) if connection.as_user else []
    name = _NO_NAME.sub("-", username.lower()).strip("-.")
    roles = shlex.join(
        [
            "rbac",
            "generate",
            *scope.arguments(),
            *place,
            "--for",
            _describe_subject(username),
            "--name",
            f"assay-{name}",
        ]
    )
    return f"{command} {roles} | {shlex.join(['kubectl', *place, 'apply', '-f', '-'])}"


def _describe_subject(username: str) -> str:
    account = _ACCOUNT.fullmatch(username)
    return f"serviceaccount:{account[1]}:{account[2]}" if account else f"user:{username}"


def _list_place(connection: Connection) -> list[str]:
    return [*_repeat_flag("--kubeconfig", connection.kubeconfig), *_repeat_flag("--context", connection.context)]


def _repeat_flag(flag: str, value: str) -> list[str]:
    return [flag, value] if value else []


def _repeated(flag: str, values: Iterable[str]) -> list[str]:
    return [part for value in values for part in _repeat_flag(flag, value)]

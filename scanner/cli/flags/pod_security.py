"""The flags for Pod Security: the configuration of the API server's own plug-in, and whether pods are judged at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.flag_group import FlagGroup
from scanner.cli.flags.scope import POLICIES

if TYPE_CHECKING:
    from scanner.model.scans.scan import Scope
    from scanner.policies.pod_security.language import PodSecurity

CONFIGURATION = "--pod-security-config"
NO_POD_SECURITY = "--no-pod-security"


@dataclass(frozen=True, slots=True)
class PodSecurityFlags(FlagGroup):
    """The defaults and exemptions of Pod Security, which no API shows, and whether it is left out."""

    pod_security_config: Annotated[
        Path | None,
        typer.Option(
            CONFIGURATION,
            metavar="FILE",
            help=(
                "Defaults and exemptions of Pod Security: the file of --admission-control-config-file of kube-apiserver. "
                "Default: labels of namespaces alone decide."
            ),
            rich_help_panel=POLICIES,
            show_default=False,
        ),
    ] = None
    no_pod_security: Annotated[
        bool,
        typer.Option(NO_POD_SECURITY, help="Leave out Pod Security.", rich_help_panel=POLICIES),
    ] = False

    def language(self) -> PodSecurity | None:
        """The language with these options; None if it is left out. Raises UsageError for a file that cannot be read or has an error."""
        from scanner.documents.pod_security import read_pod_security
        from scanner.policies.pod_security.language import PodSecurity

        if self.no_pod_security:
            return None
        path = self.pod_security_config
        return PodSecurity(read_pod_security(path) if path else None)

    def narrow(self, scope: Scope) -> Scope:
        """A scope without what is left out."""
        from scanner.policies.pod_security.language import LANGUAGE

        return replace(scope, skip_languages=(LANGUAGE,)) if self.no_pod_security else scope

    def arguments(self) -> list[str]:
        """The flags and their values."""
        given = [CONFIGURATION, str(self.pod_security_config)] if self.pod_security_config else []
        return [*given, *([NO_POD_SECURITY] if self.no_pod_security else [])]

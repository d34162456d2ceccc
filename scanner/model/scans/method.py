"""The way in which a scan was made, besides its scope and its requester, which a scan has by itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from scanner.model.resource import UserInfo

_MOST: Final = 300
"""Seconds by which clocks may differ without a note."""


@dataclass(frozen=True, slots=True)
class UsedSetting:
    """A value that a command took from the environment or from a file: its key, the variable or place, and its text without secrets."""

    key: str
    place: str
    value: str


@dataclass(frozen=True, slots=True)
class UsedConfiguration:
    """The file of a configuration, by its path and the digest of its content without secrets, and the values besides flags.

    Path and digest are empty without a file.
    """

    path: str = ""
    digest: str = ""
    settings: tuple[UsedSetting, ...] = ()


@dataclass(frozen=True, slots=True)
class ClockDifferences:
    """The seconds by which two clocks were ahead of the clock of the scan's machine when the scan began.

    They are negative for a clock that was behind, and None for a clock that the scan does not have: that of the API server, or of
    PostgreSQL.
    """

    api_server: int | None = None
    database: int | None = None

    @property
    def latest(self) -> int:
        """The seconds by which the latest of all clocks was ahead, 0 if that was the clock of the machine."""
        return max(0, self.api_server or 0, self.database or 0)

    @property
    def differ(self) -> bool:
        """Return whether two of the clocks differed by more than five minutes."""
        return self.latest - min(0, self.api_server or 0, self.database or 0) > _MOST


@dataclass(frozen=True, slots=True)
class Method:
    """The circumstances of a scan that its results can depend on. Empty fields are unknown, or do not apply.

    `scanner` is the user of the scan's own requests, as the API server reports it: another user than the requester if the
    scan simulates one. `host` is the machine. `command_line` has the arguments without passwords and tokens.
    `kyverno_release` is the release of Kyverno whose rules were applied to its policies, such as `1.19`, empty without them, and
    `kyverno_note` a sentence if this is not the installed one. `kyverno_compat` is the component whose reports are reproduced.
    `network_to` are the destinations that `--allow-network-to` names, besides public addresses. `chunk_size` is the number of
    objects in a page, 0 for files. `schema_version` is that of the database, and `ladder` that of the rules by which checks keep
    their ids (`posture.problem_ids`).
    `without_counts` is the reason why the API server's own counts of objects were not read; empty if they were.
    `policy_files` are the paths of files with policies, as the user names them; with `without_cluster_policies`, the policies of
    the cluster are left out. `kept_labels` are the keys of the labels that are kept besides those that always are.
    `configuration` has the values besides those of the command line. `clocks` are compared when the scan begins.
    `credentials_until` is the Unix time at which the client certificate or the token in the kubeconfig expires, None if unknown.
    """

    scanner: UserInfo = field(default_factory=UserInfo)
    host: str = ""
    command_line: tuple[str, ...] = ()
    kyverno_release: str = ""
    kyverno_note: str = ""
    kyverno_compat: str = ""
    network: bool = False
    network_to: tuple[str, ...] = ()
    workers: int = 1
    chunk_size: int = 0
    schema_version: str = ""
    ladder: int = 0  # databases have this name in the text of a method
    without_counts: str = ""
    policy_files: tuple[str, ...] = ()
    without_cluster_policies: bool = False
    kept_labels: tuple[str, ...] = ()
    configuration: UsedConfiguration = field(default_factory=UsedConfiguration)
    clocks: ClockDifferences = field(default_factory=ClockDifferences)
    credentials_until: int | None = None

    @property
    def policy_sources(self) -> tuple[str, ...]:
        """The sources of the policies: the paths of files, and `cluster`."""
        return (*sorted(self.policy_files), *([] if self.without_cluster_policies else ["cluster"]))

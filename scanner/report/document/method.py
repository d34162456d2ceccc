"""The way in which a scan was made, and the rules besides policies that it used, as a report has them."""

from __future__ import annotations

from dataclasses import dataclass, field

from scanner.model.json import JsonObject
from scanner.model.resource import UserInfo
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.method import ClockDifferences, UsedConfiguration
from scanner.model.scans.scan import ScanRecord, Scope


@dataclass(frozen=True, slots=True)
class Requester:
    """A user of requests; the name is empty if the server did not report the user."""

    username: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MethodSection:
    """The circumstances of a scan. `requester` made the simulated requests, and `scanner` the requests of the scan itself.

    `simulated` is true if these are two users. `chunk_size` is the number of objects in a page, and 0 for files;
    `database_schema` the version of the schema in which the scan was stored, `configuration` the values besides those of the command,
    and `clocks` the differences from the clock of the host.
    """

    requester: Requester
    scanner: Requester
    simulated: bool
    host: str
    command_line: tuple[str, ...]
    scope: Scope
    kyverno_release: str
    kyverno_note: str
    kyverno_compat: str
    network: bool
    network_to: tuple[str, ...]
    workers: int
    chunk_size: int
    tool_version: str
    database_schema: str
    configuration: UsedConfiguration
    clocks: ClockDifferences


@dataclass(frozen=True, slots=True)
class RuleSection:
    """An object that decided together with policies. `document` is None where the report does not show its content."""

    type: RuleType
    name: str
    digest: str
    masked: bool
    document: JsonObject | None = field(default=None)


def requester_of(user: UserInfo) -> Requester:
    """The name and the groups of a user."""
    return Requester(user.username, user.groups)


def method_of(record: ScanRecord) -> MethodSection | None:
    """The method of a scan; None if an older version recorded the scan."""
    scan, method = record.scan, record.method
    if method is None:
        return None
    return MethodSection(
        requester=requester_of(scan.requester),
        scanner=requester_of(method.scanner),
        simulated=bool(method.scanner.username) and method.scanner.username != scan.requester.username,
        host=method.host,
        command_line=method.command_line,
        scope=scan.scope,
        kyverno_release=method.kyverno_release,
        kyverno_note=method.kyverno_note,
        kyverno_compat=method.kyverno_compat,
        network=method.network,
        network_to=method.network_to,
        workers=method.workers,
        chunk_size=method.chunk_size,
        tool_version=scan.tool_version,
        database_schema=method.schema_version,
        configuration=method.configuration,
        clocks=method.clocks,
    )


def rules_of(record: ScanRecord) -> tuple[RuleSection, ...]:
    """The rules of a scan besides policies and bindings, params with their content."""
    return tuple(map(_rule, record.rules))


def _rule(rule: RuleObject) -> RuleSection:
    document = rule.document if rule.type is RuleType.PARAM else None
    return RuleSection(rule.type, rule.name, rule.digest, rule.masked, document)

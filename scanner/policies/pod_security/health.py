"""Labels of namespaces that do not demand what they seem to, and namespaces that demand nothing.

An entry is about all namespaces with one fault, so that a thousand of them are one line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from scanner.model.json import JsonObject, as_text, dig, text_map
from scanner.model.nearest import did_you_mean
from scanner.model.scans.health import Health, HealthKind
from scanner.policies.pod_security.configuration import Configuration
from scanner.policies.pod_security.labels import KEYS, PREFIX, Mode, is_stricter, read_labels
from scanner.policies.pod_security.standards import Level, Server

_MOST_NAMED: Final = 5


def find_health(
    namespaces: Collection[JsonObject], configuration: Configuration, server: Server, policy: str, language: str
) -> Iterator[Health]:
    """An entry for each fault, with the namespaces that have it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for namespace in namespaces:
        name = as_text(dig(namespace, "metadata", "name"))
        labels = text_map(dig(namespace, "metadata", "labels"))
        for fault in _list_faults(name, labels, configuration, server):
            found[fault].append(name)
    for fault, names in sorted(found.items()):
        yield Health(HealthKind.NOTE, policy, "", f"{_name_some(sorted(names))}: {fault}", language)


def _name_some(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"namespace{'s' * (len(names) != 1)} {shown}{f' and {more} more' if more > 0 else ''}"


def _list_faults(name: str, labels: Mapping[str, str], configuration: Configuration, server: Server) -> Iterator[str]:
    own = {key: value for key, value in labels.items() if key.startswith(PREFIX)}
    policy = read_labels(labels, configuration.defaults)
    if not own and policy.is_off_in(*Mode):
        yield "no label demands a level, so every pod is admitted"
        return
    if own and name in configuration.namespaces:
        yield "the configuration exempts the namespace, so its labels decide nothing"
        return
    for key in own.keys() - set(KEYS):
        yield f"the label {key} is unknown and decides nothing.{did_you_mean(key, KEYS)}"
    for label in policy.faults:
        effect = "restricted is enforced" if label.key == Mode.ENFORCE.level_key else "the mode allows everything"
        acts = "the latest version applies" if label.key.endswith("-version") else effect
        yield f"{label.key} is {label.value!r}, which {label.text}: {acts}"
    for mode in Mode:
        yield from _list_version_faults(
            mode, labels, policy.demands[mode].level, policy.demands[mode].version.minor, server
        )
    enforced, warned = policy.demands[Mode.ENFORCE].level, policy.demands[Mode.WARN].level
    if is_stricter(enforced, warned):
        yield f"{Mode.WARN.level_key} is weaker than {Mode.ENFORCE.level_key}: no template warns that its pods would be refused"


def _list_version_faults(
    mode: Mode, labels: Mapping[str, str], level: Level, minor: int | None, server: Server
) -> Iterator[str]:
    if mode.version_key not in labels:
        return
    if level is Level.PRIVILEGED:
        yield f"{mode.version_key} decides nothing: the level of {mode} is privileged"
    elif minor is not None and minor > server.release[1]:
        yield f"{mode.version_key} is v1.{minor}, which the server does not know: it acts as latest"
    elif minor is not None and minor < server.newest:
        yield f"{mode.version_key} is v1.{minor}: checks of later versions are not made"

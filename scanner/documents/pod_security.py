"""Reads the configuration of Pod Security in a file for `--admission-control-config-file` of kube-apiserver.

As there, a field that is unknown and a value that is invalid are errors.

Source of truth: `k8s.io/pod-security-admission` v0.30 to v0.38, packages `admission/api/load` and `admission/api/validation`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

from scanner.documents.files import read_only
from scanner.documents.nodes import BadDocument, Node
from scanner.model.json import as_object
from scanner.policies.pod_security.configuration import DEFAULT, Configuration
from scanner.policies.pod_security.labels import Demand, Mode, read_level, read_version
from scanner.policies.pod_security.standards import Level

PLUGIN: Final = "PodSecurity"
_OUTER: Final = ("apiserver.config.k8s.io/v1", "AdmissionConfiguration")
_KIND: Final = "PodSecurityConfiguration"
_VERSIONS: Final = tuple(f"pod-security.admission.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def read_pod_security(path: Path) -> Configuration:
    """The configuration in a file: an AdmissionConfiguration, or the PodSecurityConfiguration alone.

    Raises UsageError for a path that cannot be read, BadDocument for an error in the file.
    """
    root = read_only(path)
    if root.entries().get("kind", root).value == _KIND:
        return read_configuration(root)
    fields = root.fields(("apiVersion", "kind", "plugins"))
    if tuple(fields[name].value if name in fields else None for name in ("apiVersion", "kind")) != _OUTER:
        root.fail(f"must be an {_OUTER[1]} ({_OUTER[0]}) or a {_KIND}")
    for item in fields["plugins"].items() if "plugins" in fields else ():
        plugin = item.fields(("name", "path", "configuration"))
        if "name" in plugin and plugin["name"].string() == PLUGIN:
            return _read_plugin(plugin, path)
    return DEFAULT


def _read_plugin(plugin: dict[str, Node], path: Path) -> Configuration:
    """The first entry of the plug-in counts; an empty one has the defaults."""
    if "configuration" in plugin:
        return read_configuration(plugin["configuration"])
    if "path" in plugin and plugin["path"].any_string():
        return read_configuration(read_only(path.expanduser().absolute().parent / plugin["path"].string()))
    return DEFAULT


def read_configuration(root: Node) -> Configuration:
    """The configuration in a PodSecurityConfiguration. Raises BadDocument for an error in it."""
    fields = root.fields(("apiVersion", "kind", "defaults", "exemptions"))
    if "kind" not in fields or fields["kind"].value != _KIND:
        root.fail(f"the kind must be {_KIND}")
    if "apiVersion" not in fields or fields["apiVersion"].value not in _VERSIONS:
        root.fail(f"the apiVersion must be {', '.join(_VERSIONS[:-1])} or {_VERSIONS[-1]}")
    keys = [key for mode in Mode for key in (f"{mode}", f"{mode}-version")]
    defaults = fields["defaults"].fields(keys) if "defaults" in fields else {}
    names = ("usernames", "namespaces", "runtimeClasses")
    exemptions = fields["exemptions"].fields(names) if "exemptions" in fields else {}
    return Configuration(
        defaults={mode: _read_default(defaults, mode) for mode in Mode},
        users=_read_names(exemptions.get("usernames"), bool, "must not be empty"),
        namespaces=_read_names(exemptions.get("namespaces"), _is_label, "must be the name of a namespace"),
        runtime_classes=_read_names(
            exemptions.get("runtimeClasses"), _is_subdomain, "must be the name of a RuntimeClass"
        ),
        body=as_object(root.json()),
    )


def _read_default(fields: dict[str, Node], mode: Mode) -> Demand:
    """Fields that are missing or empty stand for `privileged` and `latest`."""
    level, version = Demand()
    if text := _get_text(fields, f"{mode}"):
        level = read_level(text) or _fail(fields[f"{mode}"], f"must be one of {', '.join(Level)}")
    if text := _get_text(fields, f"{mode}-version"):
        read = read_version(text)
        version = read if read is not None else _fail(fields[f"{mode}-version"], 'must be "latest" or "v1.x"')
    return Demand(level, version)


def _get_text(fields: dict[str, Node], key: str) -> str:
    return fields[key].any_string() if key in fields else ""


def _fail(node: Node, problem: str) -> NoReturn:
    node.fail(problem)


def _read_names(node: Node | None, is_valid: Callable[[str], bool], problem: str) -> frozenset[str]:
    names: set[str] = set()
    for item in node.items() if node else ():
        name = item.any_string()
        if not is_valid(name):
            item.fail(problem)
        if name in names:
            raise BadDocument(item.place, f"{item.path}: the list has this value already")
        names.add(name)
    return frozenset(names)


def _is_label(text: str) -> bool:
    return _LABEL.fullmatch(text) is not None


def _is_subdomain(text: str) -> bool:
    return _SUBDOMAIN.fullmatch(text) is not None

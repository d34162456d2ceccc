"""Manifests as YAML, with expressions of several lines as blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from scanner.model.json import Json
from scanner.report.by_policy import PolicySection

_WIDE = 10_000


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and no aliases."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Repeat equal values: the author wrote no anchors."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def definition_of(section: PolicySection) -> str:
    """The manifest of a policy as YAML, as its author wrote it where that is known; an empty text if the scan did not record it."""
    manifest = section.written or section.manifest
    return yaml_of(manifest) if manifest else ""


def yaml_of(document: Json) -> str:
    """A document as YAML, with texts of several lines as blocks."""
    return yaml.dump(_plain(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDE)


def _plain(value: Json) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value

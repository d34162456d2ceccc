"""The file `assay.yaml`: where it is found, and what it gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scanner.config.environment import CONFIG
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.config.setting import Plain
    from scanner.documents.nodes import Position
    from scanner.model.access_token import AccessToken
    from scanner.model.json import Json
    from scanner.posture.routes import Route
    from scanner.posture.settings import Settings

NAME: Final = "assay.yaml"
_XDG: Final = "XDG_CONFIG_HOME"


@dataclass(frozen=True, slots=True)
class File:
    """The values of a file with their places, by key; its settings of reports; its tokens and routes; and its errors, in order of their places.

    Without a file, `posture` is None. `unflagged_values` are the values of keys without a flag as they are written.
    """

    path: str = ""
    digest: str = ""
    values: Mapping[str, tuple[Plain, Position]] = field(default_factory=dict)
    posture: Settings | None = None
    tokens: tuple[AccessToken, ...] = ()
    routes: tuple[Route, ...] = ()
    unflagged_values: Mapping[str, tuple[Json, Position]] = field(default_factory=dict)
    errors: tuple[UsageError, ...] = ()


def find_file(named: str, environment: Mapping[str, str], folder: Path) -> Path | None:
    """The file to read: `named`, else `ASSAY_CONFIG`, else `assay.yaml` in the folder, else in the user's configuration.

    Returns None without a configuration file. Raises UsageError for an empty variable.
    """
    if named:
        return Path(named)
    if CONFIG in environment:
        if not environment[CONFIG].strip():
            raise UsageError(f"{CONFIG} is empty: name a file, or unset the variable")
        return Path(environment[CONFIG])
    home = environment.get(_XDG) or str(Path(environment.get("HOME", "~"), ".config"))
    return next((path for path in (folder / NAME, Path(home, "assay", NAME)) if os.path.lexists(path)), None)

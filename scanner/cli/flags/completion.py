"""Shell completion of policies, problems, findings, scans, clusters and contexts: fast, and silent in every trouble."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import typer

from scanner.config.current import get_database_address

if TYPE_CHECKING:
    from pathlib import Path

_KUBECONFIG: Final = "~/.kube/config"
_LARGEST: Final = 4_000_000
"""The size in bytes of the largest kubeconfig that is read while a shell waits."""


def complete_scans(context: typer.Context, incomplete: str) -> list[str]:
    """The ids of scans, the newest first, and `last`."""
    from scanner.store.completion import NameQuery, list_names

    return _choose_matching(incomplete, lambda: ["last", *list_names(_find_database(context), NameQuery.SCANS)])


def complete_clusters(context: typer.Context, incomplete: str) -> list[str]:
    """The names of the clusters of scans."""
    from scanner.store.completion import NameQuery, list_names

    return _choose_matching(incomplete, lambda: list_names(_find_database(context), NameQuery.CLUSTERS))


def complete_policies(context: typer.Context, incomplete: str) -> list[str]:
    """The names of policies."""
    from scanner.store.completion import NameQuery, list_names

    return _choose_matching(incomplete, lambda: list_names(_find_database(context), NameQuery.POLICIES))


def complete_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The ids of problems and findings that begin with what is typed; none before the first character."""
    from scanner.store.completion import list_ids as stored

    return _choose_matching(incomplete, lambda: stored(_find_database(context), incomplete) if incomplete else ())


def complete_subjects(context: typer.Context, incomplete: str) -> list[str]:
    """The subjects that a user can explain: policies, problems, findings, and objects after the slash."""
    from scanner.store.completion import list_objects

    named = _choose_matching(incomplete, lambda: list_objects(_find_database(context), incomplete))
    return [*complete_policies(context, incomplete), *complete_ids(context, incomplete), *named]


def complete_contexts(context: typer.Context, incomplete: str) -> list[str]:
    """The contexts of the kubeconfig that the command will read."""
    named = str(context.params.get("kubeconfig") or os.environ.get("KUBECONFIG") or _KUBECONFIG)
    return _choose_matching(incomplete, lambda: _list_contexts(named.split(os.pathsep)))


def _list_contexts(paths: Iterable[str]) -> list[str]:
    from pathlib import Path

    return sorted({name for path in filter(None, paths) for name in _read_contexts(Path(path).expanduser())})


def _read_contexts(path: Path) -> list[str]:
    from scanner.cluster import yaml
    from scanner.files import read_text
    from scanner.model.json import as_list, as_text, dig

    try:
        config = yaml.load(read_text(path, _LARGEST))
    except (OSError, ValueError):
        return []
    return [as_text(dig(each, "name")) for each in as_list(dig(config, "contexts"))]


def _choose_matching(incomplete: str, read: Callable[[], Iterable[str]]) -> list[str]:
    """The texts that begin with what is typed; none if they cannot be read, because a shell would print the trouble."""
    try:
        return [text for text in read() if text.startswith(incomplete) and text.isprintable()]
    except Exception:  # noqa: BLE001 - the command itself reports every error
        return []


def _find_database(context: typer.Context) -> str:
    """The database of the command: the flag, the variable, the configuration file, or the default."""
    typed = context.params.get("db") or os.environ.get("ASSAY_DB")
    return get_database_address(str(typed)) if typed else get_database_address(_find_configured_database(context))


def _find_configured_database(context: typer.Context) -> str:
    """The database that the configuration file names, or an empty string."""
    from pathlib import Path

    from scanner.config.file import find_file
    from scanner.config.file_reader import read_file
    from scanner.config.setting import Setting

    path = find_file(str(context.params.get("config") or ""), os.environ, Path())
    return str(read_file(path, (Setting("db", "--db"),)).values.get("db", ("", None))[0]) if path else ""

"""`assay version`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from scanner import __version__
from scanner.cli.terminal.stdout import FormOption, OutputForm, standard_output

if TYPE_CHECKING:
    from scanner.model.json import JsonObject


def command(output: FormOption = OutputForm.TABLE) -> None:
    """Print the version; as JSON, with the build, the schema of the database, Kubernetes' release and the dependencies."""
    with standard_output() as out:
        if output is OutputForm.JSON:
            import json

            out.write(json.dumps(_make_document(), indent=2) + "\n")
        else:
            out.write(f"assay {__version__}\n")


def print_version(show: bool) -> None:
    """`assay --version`."""
    if show:
        command()
        raise typer.Exit


def _make_document() -> JsonObject:
    """The version, and what it was built from and runs on. The commit and the time of the build are null outside a release."""
    import platform

    from scanner.model.release import NEWEST, format_minor
    from scanner.store.rows.tables import HEAD

    return {
        "version": __version__,
        **_read_build(),
        "schema": HEAD,
        "kubernetes": format_minor(NEWEST),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "dependencies": dict(_list_dependencies()),
    }


def _read_build() -> JsonObject:
    """The file that a release puts beside this package: see RELEASING.md."""
    import json
    from importlib import resources

    try:
        build = json.loads(resources.files("scanner").joinpath("build.json").read_text())
    except (OSError, ValueError):
        build = {}
    return {"commit": build.get("commit"), "built": build.get("built")}


def _list_dependencies() -> Iterator[tuple[str, str]]:
    """The installed versions of the packages that this one names, also for its extras."""
    import re
    from importlib.metadata import PackageNotFoundError, requires, version

    try:
        names = {match[0].lower() for text in requires("kube-assay") or () if (match := re.match(r"[\w.-]+", text))}
    except PackageNotFoundError:
        return
    for name in sorted(names):
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue  # a package of an extra that is not installed

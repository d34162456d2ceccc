"""The values of the environment and of `assay.yaml` for the flags that the user leaves out, for every command.

The settings are read only where something is configured: they follow from the flags of four commands, whose import takes longer than
a small command.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from scanner.config.current import use_configuration
from scanner.config.flags import Flag, list_flags
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.config.sources import Sources

Command: TypeAlias = Callable[..., None]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="PATH",
        help="Configuration file. Default: ASSAY_CONFIG, ./assay.yaml, assay/assay.yaml in $XDG_CONFIG_HOME.",
        show_default=False,
    ),
]
WITHOUT_SETTINGS: Final = frozenset(
    {"config check", "config init", "config view", "db copy", "reperform", "test", "token create", "version"}
)
"""The commands without a flag that is a setting: they have no flag `--config`, or one of their own."""
_CONFIG: Final = "config"
_CONTEXT: Final = "context_of_flags"


def configure(application: typer.Typer, group: str = "") -> None:
    """Configure every command of an application and of its groups; `group` is the name of the group with a space."""
    for command in application.registered_commands:
        if command.callback is not None and f"{group}{_find_name(command)}" not in WITHOUT_SETTINGS:
            command.callback = configure_command(command.callback)
    for each in application.registered_groups:
        if each.typer_instance is not None:
            configure(each.typer_instance, f"{each.name} ")


def _find_name(command: typer.models.CommandInfo) -> str:
    """The name that typer gives a command."""
    return command.name or getattr(command.callback, "__name__", "").replace("_", "-")


def configure_command(command: Command) -> Command:
    """A command with the flag `--config`; the same command if it has the flag already."""
    signature = inspect.signature(command, eval_str=True)
    flags = list_flags(command)
    own_context = next((name for name, each in signature.parameters.items() if each.annotation is typer.Context), None)
    if _CONFIG in signature.parameters:
        return command

    @wraps(command)
    def run(**values: Any) -> None:
        context: typer.Context = values[own_context] if own_context else values.pop(_CONTEXT)
        file = str(values.pop(_CONFIG) or "")
        sources = _find_sources(flags, _collect_typed(context, values), file)
        try:
            with use_configuration(sources.configuration, sources.list_used()):
                command(**(values | sources.collect_values()))
        except UsageError as error:
            raise sources.add_places(error) from error

    added = [
        *([] if own_context else [_make_keyword(_CONTEXT, typer.Context)]),
        _make_keyword(_CONFIG, ConfigOption, None),
    ]
    run.__signature__ = inspect.Signature([*signature.parameters.values(), *added])  # type: ignore[attr-defined]
    # typer would evaluate the annotations of the command a second time.
    run.__annotations__ = {}
    return run


def _make_keyword(name: str, annotation: object, default: object = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _find_sources(flags: tuple[Flag, ...], typed: Mapping[str, object], file: str) -> Sources:
    """The values of the flags with their sources. Raises UsageError for the first error of the configuration."""
    from scanner.config.configuration import Configuration, is_given, read
    from scanner.config.sources import Sources

    if not is_given(file, os.environ):
        return Sources(flags, typed, lambda _: "", configuration=Configuration())
    from scanner.cli.commands.catalog import find_key, list_settings

    return Sources(flags, typed, find_key, configuration=read(list_settings(), file, os.environ))


def _collect_typed(context: typer.Context, values: Mapping[str, object]) -> dict[str, object]:
    """The values of the flags that the user typed, by parameter."""
    sources = {name: context.get_parameter_source(name) for name in values}
    return {
        name: values[name] for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"
    }

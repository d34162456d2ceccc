"""Gives every command the values of the environment and of `assay.yaml` for the flags that the user leaves out."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from scanner.cli.catalog import key_of_flag, settings
from scanner.cli.flags import flags_of
from scanner.cli.settings import current
from scanner.errors import UsageError

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
_CONFIG: Final = "config"
_CONTEXT: Final = "context_of_flags"


def configure(application: typer.Typer) -> None:
    """Configure every command of an application and of its groups."""
    for command in application.registered_commands:
        if command.callback is not None:
            command.callback = configured(command.callback)
    for group in application.registered_groups:
        if group.typer_instance is not None:
            configure(group.typer_instance)


def configured(command: Command) -> Command:
    """A command with the flag `--config`; the same command if none of its flags is a setting."""
    signature = inspect.signature(command, eval_str=True)
    flags = flags_of(command)
    own_context = next((name for name, each in signature.parameters.items() if each.annotation is typer.Context), None)
    if _CONFIG in signature.parameters or not any(map(key_of_flag, flags)):
        return command

    @wraps(command)
    def run(**values: Any) -> None:
        from scanner.cli.sources import Sources
        from scanner.config.configuration import read

        context: typer.Context = values[own_context] if own_context else values.pop(_CONTEXT)
        configuration = read(settings(), str(values.pop(_CONFIG) or ""), os.environ)
        sources = Sources(flags, _typed(context, values), configuration=configuration)
        try:
            with current(configuration, sources.used()):
                command(**(values | sources.values()))
        except UsageError as error:
            raise sources.placed(error) from error

    added = [*([] if own_context else [_keyword(_CONTEXT, typer.Context)]), _keyword(_CONFIG, ConfigOption, None)]
    run.__signature__ = inspect.Signature([*signature.parameters.values(), *added])  # type: ignore[attr-defined]
    # typer would evaluate the annotations of the command a second time.
    run.__annotations__ = {}
    return run


def _keyword(name: str, annotation: object, default: object = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _typed(context: typer.Context, values: Mapping[str, object]) -> dict[str, object]:
    """The values of the flags that the user typed, by parameter."""
    sources = {name: context.get_parameter_source(name) for name in values}
    return {
        name: values[name] for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"
    }

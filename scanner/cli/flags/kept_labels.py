"""`--keep-label` and `--keep-annotation`: the labels and annotations that a scan stores with every object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.flag_group import FlagGroup
from scanner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scanner.model.population import KeptKeys
    from scanner.posture.owners import OwnerKey


@dataclass(frozen=True, slots=True)
class KeptKeyFlags(FlagGroup):
    """The further labels and annotations that a scan keeps."""

    keep_labels: Annotated[
        tuple[str, ...],
        typer.Option(
            "--keep-label",
            metavar="KEY",
            help="Also store this label of every object (repeatable). Always stored: team, owner, app, app.kubernetes.io/*.",
            show_default=False,
        ),
    ] = ()
    keep_annotations: Annotated[
        tuple[str, ...],
        typer.Option(
            "--keep-annotation",
            metavar="KEY",
            help="Store this annotation of every object, without secrets (repeatable).",
            show_default=False,
        ),
    ] = ()

    def keys(self, owners: Iterable[OwnerKey] = ()) -> KeptKeys:
        """The keys that a scan keeps, those that name owners included.

        Raises UsageError for a key that no label or annotation can have.
        """
        from scanner.model.population import DEFAULT_KEYS

        for label in self.keep_labels:
            _reject_invalid("--keep-label", label, label)
        for annotation in self.keep_annotations:
            _reject_invalid("--keep-annotation", annotation, annotation.lower())  # as upstream: ValidateAnnotations
        of_owners = [(key.source, key.key) for key in owners]
        return DEFAULT_KEYS.add_keys(
            (*self.keep_labels, *(key for source, key in of_owners if source == "label")),
            (*self.keep_annotations, *(key for source, key in of_owners if source == "annotation")),
        )


def _reject_invalid(flag: str, key: str, qualified_name: str) -> None:
    from scanner.policies.api_validation.names import check_qualified_name

    for error in check_qualified_name(qualified_name):
        raise UsageError(f"{flag} {key}: {error}. Write a key alone, such as team or example.com/team")

"""`--keep-label` and `--keep-annotation`: the labels and annotations that a scan stores with every object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from scanner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scanner.model.population import KeptKeys
    from scanner.posture.owners import OwnerKey

KeepLabelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep-label",
        metavar="KEY",
        help="Also store this label of every object (repeatable). Always stored: team, owner, app, app.kubernetes.io/*.",
        show_default=False,
    ),
]
KeepAnnotationsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep-annotation",
        metavar="KEY",
        help="Store this annotation of every object, without secrets (repeatable).",
        show_default=False,
    ),
]


def kept_keys(labels: list[str], annotations: list[str], owners: Iterable[OwnerKey] = ()) -> KeptKeys:
    """The keys that a scan keeps, those that name owners included.

    Raises UsageError for a key that no label or annotation can have.
    """
    from scanner.model.population import DEFAULT_KEYS

    for label in labels:
        _reject_invalid("--keep-label", label, label)
    for annotation in annotations:
        _reject_invalid("--keep-annotation", annotation, annotation.lower())  # as upstream: ValidateAnnotations
    own = [(key.source, key.key) for key in owners]
    return DEFAULT_KEYS.add_keys(
        (*labels, *(key for source, key in own if source == "label")),
        (*annotations, *(key for source, key in own if source == "annotation")),
    )


def _reject_invalid(flag: str, key: str, qualified_name: str) -> None:
    from scanner.policies.api_validation.names import check_qualified_name

    for error in check_qualified_name(qualified_name):
        raise UsageError(f"{flag} {key}: {error}. Write a key alone, such as team or example.com/team")

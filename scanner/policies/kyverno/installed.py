"""The installed release of Kyverno: that of its admission controller, by the tag of its image or by a label of its Deployment.

Source of truth: the Deployments of Kyverno's manifests and of its Helm chart. The tag of the image tells what runs. The label
`app.kubernetes.io/version` of a chart is the version of the chart, whose minor version is that of Kyverno less ten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scanner.errors import ListFailed
from scanner.model.json import JsonObject, as_list, as_text, dig, text_map
from scanner.model.release import Release, minor_of
from scanner.policies.bound_language import BindingContext, ListRight
from scanner.policies.kyverno.releases import NEWEST, newest_for, release_of

_ADMISSION: Final = "admission-controller"
_CONTROLLERS: Final = frozenset({_ADMISSION, "background-controller", "cleanup-controller", "reports-controller"})
_IMAGES: Final = _CONTROLLERS | {"kyverno"}
_CONTAINERS: Final = frozenset({"kyverno", "controller"})
"""The names of the containers of Kyverno's Deployments."""
_COMPONENT: Final = "app.kubernetes.io/component"
_VERSION: Final = "app.kubernetes.io/version"
_AHEAD: Final = 10
_WITHOUT: Final = "the rules of the newest release of Kyverno are applied, unless --kyverno-version names another"


def right(namespace: str) -> ListRight:
    """The permission to list Kyverno's Deployments, without which the newest release is assumed."""
    return ListRight("apps", "deployments", namespace, "the release of Kyverno", optional=True, without=_WITHOUT)


def installed_release(namespace: str, context: BindingContext) -> Release:
    """The release of the Kyverno in a namespace; the newest one if it is not known, with a note unless files have no Kyverno."""
    kinds = (
        kind for kind in context.served if (kind.group, kind.version, kind.plural) == ("apps", "v1", "deployments")
    )
    kind = next(kinds, None)
    listed = context.lists.list_all(kind, (namespace,)) if kind and context.lists else iter(())
    try:
        found = sorted(filter(_is_kyvernos, (resource.body for resource in listed)), key=_is_not_admission)
    except (ListFailed, ValueError) as error:
        return newest_for(f"The Deployments in namespace {namespace} cannot be read: {error}")
    if not found and context.files:
        return Release(NEWEST)
    if not found:
        return newest_for(f"Namespace {namespace} has no Deployment of Kyverno")
    version = next((version for deployment in found for version in _versions(deployment)), "")
    if not version:
        return newest_for(
            f"The Deployments of Kyverno in namespace {namespace} have neither a tag nor a label with a version"
        )
    return release_of(version)


def _is_kyvernos(deployment: JsonObject) -> bool:
    return _component(deployment) in _CONTROLLERS or any(name in _IMAGES for name, _ in _images(deployment))


def _is_not_admission(deployment: JsonObject) -> bool:
    is_named = any(name == "kyverno" for name, _ in _images(deployment))
    return _component(deployment) != _ADMISSION and not is_named


def _component(deployment: JsonObject) -> str:
    return text_map(dig(deployment, "metadata", "labels")).get(_COMPONENT, "")


def _images(deployment: JsonObject) -> Iterator[tuple[str, str]]:
    """The names and tags of the images of Kyverno's containers, without registry, path and digest."""
    for container in as_list(dig(deployment, "spec", "template", "spec", "containers")):
        reference = as_text(dig(container, "image")).partition("@")[0].rpartition("/")[2]
        name, _, tag = reference.partition(":")
        if name in _IMAGES or as_text(dig(container, "name")) in _CONTAINERS:
            yield name, tag


def _versions(deployment: JsonObject) -> Iterator[str]:
    """The versions of Kyverno that a Deployment names, the most reliable first."""
    label = text_map(dig(deployment, "metadata", "labels")).get(_VERSION, "")
    for text in (*(tag for _, tag in _images(deployment)), label):
        match minor_of(text):
            case (1, _):
                yield text
            case (3, minor):
                yield f"1.{minor + _AHEAD}"
            case _:
                pass

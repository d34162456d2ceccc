"""The manifests of a policy language: a policy, a binding, or an object that its policies rely on."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.model.json import JsonObject
from scanner.model.policy import Binding, Policy


@dataclass(frozen=True, slots=True)
class Supporting:
    """An object that policies of one language or of a family rely on, such as an exception. `what` names its kind in sentences."""

    what: str
    name: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A manifest that was read."""

    content: Policy | Binding | Supporting


@dataclass(frozen=True, slots=True)
class PolicyDocuments:
    """The policies of one language that a scan selected, in force or not, their bindings, and the objects that they rely on."""

    policies: tuple[Policy, ...] = ()
    bindings: tuple[Binding, ...] = ()
    supporting: tuple[Supporting, ...] = ()

"""What a manifest of a policy language may be: a policy, a binding, or an object that its policies rely on."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.model.json import JsonObject
from scanner.model.policy import Binding, Policy


@dataclass(frozen=True, slots=True)
class Supporting:
    """An object that policies of a language rely on, such as an exception. `what` is what its kind is called in a sentence."""

    language: str
    what: str
    name: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A manifest as a noun. `ignored` are the paths of fields that the API server drops with a warning."""

    content: Policy | Binding | Supporting
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyDocuments:
    """The policies of one language that a scan chose, in force or not, their bindings, and what they rely on."""

    policies: tuple[Policy, ...] = ()
    bindings: tuple[Binding, ...] = ()
    supporting: tuple[Supporting, ...] = ()

"""The merge schema of an object: the lists and maps that are merged, their keys, and those that are replaced whole.

Mirrors `structured-merge-diff/v6/schema`: an atom is a scalar, a list, a map, or several of them when the schema leaves it
open. Schemas are kept as compact JSON and read type by type, when a patch first touches it:

| JSON | meaning |
|---|---|
| `"s"`, `"b"`, `"n"`, `"i"`, `"l"` | a string, a boolean, a number, an int32, an int64 |
| `"u"`, `"q"` | any scalar, a quantity |
| `"*"`, `"?"` | anything, replaced whole; anything, maps in it merged |
| `7` | the type of that number; `{"r": 7, "x": true}` the same, but atomic (or not) here |
| `{"e": …}` | an atomic list of …, `{"e": …, "k": ["name"]}` one with keys, `{"e": …, "k": []}` a set |
| `{"f": {…}, "v": …}` | an object with these fields, and values of this kind under any other name; `"x": true` atomic, `"d"` defaults, `"w"` written even when empty, `"n"` nullable |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol, TypeAlias

from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object, texts
from scanner.model.resource import Kind

Scalar: TypeAlias = Literal["string", "boolean", "numeric", "int32", "int64", "untyped", "quantity"]
_SCALARS: Mapping[str, Scalar] = {
    "s": "string",
    "b": "boolean",
    "n": "numeric",
    "i": "int32",
    "l": "int64",
    "u": "untyped",
    "q": "quantity",
}


@dataclass(frozen=True, slots=True)
class MergedListType:
    """A list of `element`s. Associative lists are merged: by `keys`, or as sets when there are none."""

    element: Json
    associative: bool = False
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergedMapType:
    """An object. `element` is the type of members that are not fields, None when there may be none."""

    fields: JsonObject = field(default_factory=dict)
    element: Json = None
    atomic: bool = False
    defaults: JsonObject = field(default_factory=dict)
    written: frozenset[str] = frozenset()
    nullable: frozenset[str] = frozenset()

    def of(self, name: str) -> Json:
        """The type of a field, or None when the object may have no field of this name."""
        return self.fields.get(name, self.element)


@dataclass(frozen=True, slots=True)
class Atom:
    """The alternatives for a value; the API calls a schema with several of them untyped."""

    scalar: Scalar | None = None
    list: MergedListType | None = None
    map: MergedMapType | None = None
    name: str = ""

    def deduce(self, value: object) -> Atom:
        """The one alternative that fits a value, or all of them when none does."""
        if self.scalar is None or (self.list is None and self.map is None):
            return self
        match value:
            case bool() | int() | float() | str() if self.scalar:
                return Atom(scalar=self.scalar, name=self.name)
            case list() if self.list:
                return Atom(list=self.list, name=self.name)
            case dict() if self.map:
                return Atom(map=self.map, name=self.name)
            case _:
                return self


UNTYPED = Atom(scalar="untyped", list=MergedListType("*"), map=MergedMapType(element="*", atomic=True))
DEDUCED = Atom(scalar="untyped", list=MergedListType("*"), map=MergedMapType(element="?"))


@dataclass(frozen=True, slots=True)
class DefinedVersions:
    """The versions of a CustomResourceDefinition: their names, and the schema of the one in which objects are stored.

    If it `relabels`, a conversion changes the apiVersion alone; else a webhook converts, and only a server can ask it.
    """

    names: tuple[str, ...]
    stored: str
    schema: JsonObject
    relabels: bool


@dataclass(frozen=True, slots=True)
class Custom:
    """A version of a custom resource as its CustomResourceDefinition describes it, and whether `status` is a subresource.

    `versions` are all versions of the definition, None if the definition is unknown.
    """

    schema: JsonObject
    has_status: bool = False
    versions: DefinedVersions | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """The type of one kind's objects.

    `types` and `names` belong to all kinds of the same source; `builtin` marks kinds that are compiled into the API server. Of
    the other kinds, custom resources are described by `custom`; without it, a kind is an aggregated API server's. With
    `needs_all_keys`, as before Kubernetes 1.34, an element of a merged list that lacks one of its keys is rejected.
    """

    root: Json
    types: Sequence[Json]
    names: Sequence[str]
    builtin: bool = True
    custom: Custom | None = None
    needs_all_keys: bool = False
    _atoms: dict[int, Atom] = field(default_factory=dict, compare=False, repr=False)
    _inline: dict[int, Atom] = field(default_factory=dict, compare=False, repr=False)

    def resolve(self, ref: Json) -> Atom:
        """The atom of a reference (the number of a type, or a name) or of a type written in place."""
        if type(ref) is int:
            return self._atoms.get(ref) or self._read_numbered(ref)
        if isinstance(ref, str):
            return _NAMED[ref]
        atom = self._inline.get(id(ref))
        if atom is None:
            atom = self._inline[id(ref)] = self._read_in_place(as_object(ref))
        return atom

    def _read_in_place(self, ref: JsonObject) -> Atom:
        match ref:
            case {"r": int(number), "x": bool(atomic)}:
                return _override_atomic(self._read_numbered(number), atomic=atomic)
            case _:
                return _read_shape(ref)

    def _read_numbered(self, number: int) -> Atom:
        if number not in self._atoms:
            self._atoms[number] = replace(self.resolve(self.types[number]), name=self.names[number])
        return self._atoms[number]


_NAMED: Mapping[str, Atom] = {
    "*": UNTYPED,
    "?": DEDUCED,
    **{letter: Atom(scalar=scalar) for letter, scalar in _SCALARS.items()},
}


def _override_atomic(atom: Atom, *, atomic: bool) -> Atom:
    if atom.map:
        return replace(atom, map=replace(atom.map, atomic=atomic))
    return replace(atom, list=atom.list and replace(atom.list, associative=not atomic))


def _read_shape(shape: JsonObject) -> Atom:
    if "e" in shape:
        keys = shape.get("k")
        return Atom(list=MergedListType(shape["e"], associative=keys is not None, keys=texts(as_list(keys))))
    return Atom(
        scalar="untyped" if shape.get("a") else None,
        list=MergedListType("*") if shape.get("a") else None,
        map=MergedMapType(
            fields=as_object(shape.get("f")),
            element=shape.get("v"),
            atomic=shape.get("x") is True,
            defaults=as_object(shape.get("d")) or EMPTY,
            written=frozenset(texts(shape.get("w"))),
            nullable=frozenset(texts(shape.get("n"))),
        ),
    )


Conversion: TypeAlias = Literal["relabels", "server", "unknown"]
"""The way in which a server converts an object to another version of a kind: the apiVersion alone changes, or only a server knows
the result; unknown if the definition of the kind cannot be read."""


class Schemas(Protocol):
    """A source of merge schemas of kinds."""

    def schema(self, kind: Kind) -> Schema | None:
        """The schema of a kind, or None when it is unknown."""
        ...

    def conversion(self, kind: Kind) -> Conversion:
        """The way in which a server converts objects to this version of a kind that is not built in."""
        ...


class NoSchemas:
    """An implementation of `Schemas` that has no schema."""

    def schema(self, kind: Kind) -> Schema | None:
        """None for every kind."""
        del kind
        return None

    def conversion(self, kind: Kind) -> Conversion:
        """That of a server, for every kind."""
        del kind
        return "server"


NO_SCHEMAS: Final = NoSchemas()

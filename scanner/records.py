"""`dataclass` as in the standard library, made in a fifth of the time: each command makes some hundred classes before it starts.

Source of truth: `dataclasses` of Python 3.11. The standard library compiles up to ten methods of each class. Here, it finds the fields
and makes the slots, and a method is compiled when it is first called: most commands call few. `fields`, `replace`, `asdict` and patterns
know these classes. A base and its subclasses are both made here, or neither. Left out are `InitVar` and the options that are not named below (ADR 95).
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from dataclasses import Field, dataclass

    _Fields = Sequence[Field[Any]]
    _Write = Callable[[_Fields], str]
else:

    def dataclass(plain: type | None = None, /, **options: bool) -> object:
        """Make a dataclass. The options are those of `dataclasses.dataclass` that `_make` names."""
        return partial(_make, **options) if plain is None else _make(plain, **options)


__all__ = ["dataclass"]

_ORDER: Final = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}
_NAMES: Final[dict[str, object]] = {
    "_set": object.__setattr__,
    "_MISSING": MISSING,
    "_recursive_repr": recursive_repr(),
}
"""The objects that the text of every method may name."""


def _make(
    plain: type,
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    order: bool = False,
) -> object:
    own = {**plain.__dict__}
    if not plain.__doc__:
        plain.__doc__ = plain.__name__  # the standard library would write a signature, which takes long
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(plain)
    fields = dataclasses.fields(made)
    methods: dict[str, _Write] = {"__init__": partial(_write_init, made, frozen=frozen), "__repr__": _write_repr}
    if eq:
        methods["__eq__"] = partial(_write_comparison, "__eq__", "==")
    if order:
        methods |= {name: partial(_write_comparison, name, operator) for name, operator in _ORDER.items()}
    for name, write in methods.items():
        if name not in own:
            _add(made, name, write, fields)
    # Python gives a class with an __eq__ of its own the __hash__ None.
    if eq and own.get("__hash__") is None:
        if frozen:
            _add(made, "__hash__", _write_hash, fields)
        else:
            made.__hash__ = None
    if frozen:
        _freeze(made, fields, own, slots=slots)
    return made


def _add(made: Any, name: str, write: _Write, fields: _Fields) -> None:
    """Give a class a method that is compiled when it is first called."""

    def method(self: object, *values: object, **by_name: object) -> object:
        namespace = {"__name__": made.__module__, **_NAMES}
        namespace |= {f"_default_{field.name}": _find_default(field) for field in fields}
        exec(write(fields), namespace)  # noqa: S102 - as the standard library does; the text has names of fields only
        compiled: Any = namespace[name]
        compiled.__qualname__ = f"{made.__qualname__}.{name}"
        setattr(made, name, compiled)
        return compiled(self, *values, **by_name)

    setattr(made, name, method)


def _find_default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory


def _write_init(made: type, fields: _Fields, *, frozen: bool) -> str:
    """The text of `__init__`: defaults are named `_default_NAME`, as are the functions that make them."""
    given = [field for field in fields if field.init]
    named = [_write_parameter(field) for field in given if field.kw_only]
    parameters = ["self", *(_write_parameter(field) for field in given if not field.kw_only), *(["*"] if named else [])]
    lines = [_write_assignment(field, frozen=frozen) for field in fields if field.init or _has_default(field)]
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    return "\n ".join([f"def __init__({', '.join([*parameters, *named])}):", *(lines or ["pass"])])


def _has_default(field: Field[Any]) -> bool:
    return _find_default(field) is not MISSING


def _write_parameter(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:
        return f"{field.name}=_MISSING"
    return f"{field.name}=_default_{field.name}" if _has_default(field) else field.name


def _write_assignment(field: Field[Any], *, frozen: bool) -> str:
    name, value = field.name, field.name if field.init else f"_default_{field.name}"
    if field.default_factory is not MISSING:
        value = f"_default_{name}() if {name} is _MISSING else {name}" if field.init else f"_default_{name}()"
    return f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}"


def _write_repr(fields: _Fields) -> str:
    values = ", ".join(f"{field.name}={{self.{field.name}!r}}" for field in fields if field.repr)
    return f'@_recursive_repr\ndef __repr__(self): return f"{{self.__class__.__qualname__}}({values})"'


def _write_comparison(name: str, operator: str, fields: _Fields) -> str:
    compared = [field.name for field in fields if field.compare]
    values = f"{_write_values('self', compared)} {operator} {_write_values('other', compared)}"
    return f"def {name}(self, other): return {values} if other.__class__ is self.__class__ else NotImplemented"


def _write_hash(fields: _Fields) -> str:
    hashed = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
    return f"def __hash__(self): return hash({_write_values('self', hashed)})"


def _write_values(record: str, names: Iterable[str]) -> str:
    """The text of the tuple of a record's values."""
    return f"({''.join(f'{record}.{name},' for name in names)})"


def _freeze(made: Any, fields: _Fields, own: Mapping[str, object], *, slots: bool) -> None:
    """Let a record be changed by nothing but `replace`, which makes another."""
    names = frozenset(field.name for field in fields)

    def __setattr__(self: object, name: str, value: object) -> None:  # noqa: N807 - the name of the method
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:  # noqa: N807 - the name of the method
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    made.__setattr__, made.__delattr__ = __setattr__, __delattr__
    if slots:  # as `pickle` and `copy` would assign
        made.__getstate__ = own.get("__getstate__", _get_state)
        made.__setstate__ = own.get("__setstate__", _set_state)


def _get_state(record: Any) -> list[object]:
    return [getattr(record, field.name) for field in dataclasses.fields(record)]


def _set_state(record: Any, values: Sequence[object]) -> None:
    for field, value in zip(dataclasses.fields(record), values, strict=True):
        object.__setattr__(record, field.name, value)

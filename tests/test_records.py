"""Records are dataclasses as the standard library makes them, and cost less to make."""

from __future__ import annotations

import copy
import dataclasses
import operator
import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

import scanner
from scanner.records import dataclass

_MAKE: Mapping[str, Any] = {"standard": dataclasses.dataclass, "ours": dataclass}
_COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


class FieldForm(NamedTuple):
    """How a field is declared."""

    default: str
    init: bool
    repr: bool
    compare: bool
    hash: bool | None
    kw_only: bool

    @property
    def is_required(self) -> bool:
        return self.init and not self.kw_only and self.default == "none"

    def declare(self) -> Any:
        defaults: dict[str, dict[str, Any]] = {"none": {}, "value": {"default": 7}, "made": {"default_factory": tuple}}
        return field(**defaults[self.default], **{name: getattr(self, name) for name in self._fields[1:]})


class ClassForm(NamedTuple):
    """How a class is declared: its fields, its options, and the methods of its own."""

    fields: tuple[FieldForm, ...]
    options: Mapping[str, bool]
    methods: tuple[str, ...]

    def make(self, decorator: Any) -> Any:
        """Return a class, whose fields are a, b, c and so on."""
        own: dict[str, Any] = {
            "__repr__": lambda _: "own",
            "__eq__": lambda *_: True,
            "__hash__": lambda _: 1,
            "__post_init__": lambda record: object.__setattr__(record, "a", ("changed", record.a)),
        }
        named = dict(zip("abcdef", self.fields, strict=False))
        body = {name: form.declare() for name, form in named.items()}
        annotations: dict[str, object] = dict.fromkeys(named, object)
        methods = {name: own[name] for name in self.methods}
        return decorator(**self.options)(type("Made", (), {"__annotations__": annotations, **body, **methods}))


_PLAIN = FieldForm("none", init=True, repr=True, compare=True, hash=None, kw_only=False)
_FIELDS = st.builds(
    FieldForm,
    st.sampled_from(["none", "value", "made"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, True, False]),
    st.booleans(),
)


@st.composite
def class_forms(draw: st.DrawFn) -> ClassForm:
    """Classes that Python accepts: required fields come first, and an order needs an equality."""
    fields = sorted(draw(st.lists(_FIELDS, max_size=5)), key=lambda form: not form.is_required)
    options = {name: draw(st.booleans()) for name in ("frozen", "slots", "eq")}
    options["order"] = options["eq"] and draw(st.booleans())
    methods = draw(st.sets(st.sampled_from(["__repr__", "__eq__", "__hash__"])))
    changes = fields and fields[0].init and draw(st.booleans())
    return ClassForm(tuple(fields), options, (*sorted(methods), *(["__post_init__"] if changes else [])))


_ARGUMENTS = st.tuples(
    st.lists(st.integers(0, 2), max_size=4).map(tuple), st.dictionaries(st.sampled_from("abcdx"), st.integers(0, 2))
)


def outcome(act: Callable[[], Any]) -> object:
    """The result, or the error with its text; a record is shown by its repr."""
    try:
        result = act()
        return repr(result) if dataclasses.is_dataclass(result) else result
    except Exception as error:  # noqa: BLE001 - every error must be the same
        return type(error), str(error)


def describe(made: Any, calls: list[tuple[tuple[int, ...], dict[str, int]]]) -> list[object]:
    """All that a class and its objects show."""
    shown: list[object] = [made.__match_args__, [each.name for each in dataclasses.fields(made)], made.__hash__ is None]
    records = []
    for values, by_name in calls:
        try:
            record = made(*values, **by_name)
        except TypeError as error:
            shown.append(str(error))
            continue
        records.append(record)
        shown += [
            outcome(partial(repr, record)),
            None if made.__hash__ is object.__hash__ else outcome(partial(hash, record)),
            outcome(partial(copy.copy, record)),
            outcome(partial(dataclasses.replace, record, a=5)),
            outcome(partial(dataclasses.asdict, record)),
            *(outcome(partial(setattr, record, each.name, 9)) for each in dataclasses.fields(made)),
            *(outcome(partial(delattr, record, each.name)) for each in dataclasses.fields(made)),
            outcome(partial(dataclasses.astuple, record)),
        ]
    shown += [
        outcome(partial(compare, one, other)) for compare in _COMPARISONS for one in records for other in [*records, 3]
    ]
    return shown


def hide_address(shown: list[object]) -> list[object]:
    """Without texts that have addresses in memory, such as those of objects without `__repr__`."""
    return [item for item in shown if "object at 0x" not in str(item)]


@given(class_forms(), st.lists(_ARGUMENTS, min_size=1, max_size=3))
def test_a_record_is_what_the_standard_library_makes(
    form: ClassForm, calls: list[tuple[tuple[int, ...], dict[str, int]]]
) -> None:
    """Objects, errors and comparisons are the same, whatever the fields and the options are."""
    expected, actual = (hide_address(describe(form.make(make), calls)) for make in _MAKE.values())
    assert expected == actual


@dataclass(frozen=True, slots=True)
class Named:
    """A base with a default that is made."""

    name: str
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Owned(Named):
    """A subclass, whose field stands after those of the base."""

    owner: Named | None = None


def test_a_subclass_has_the_fields_of_its_base() -> None:
    """Objects of a base and of a subclass are never equal."""
    owned = Owned("pod", {"app": "web"}, owner=Named("set"))
    assert "Owned(name='pod', labels={'app': 'web'}, owner=Named(name='set', labels={}))" == repr(owned)
    assert Named("pod") != Owned("pod")


def test_a_record_passes_between_processes() -> None:
    """Workers get and return records as pickles."""
    owned = Owned("pod", {"app": "web"}, owner=Named("set"))
    assert owned == pickle.loads(pickle.dumps(owned))  # noqa: S301 - of this test


def test_a_method_belongs_to_the_module_of_its_class() -> None:
    """Its name in the message of an error is that of the class."""
    made: Any = ClassForm((_PLAIN,), {}, ()).make(dataclass)
    made(1)
    assert (__name__, "Made.__init__") == (made.__init__.__module__, made.__init__.__qualname__)


def test_a_default_that_is_made_is_not_shared() -> None:
    """Each object has its own."""
    first, second = Named("a"), Named("b")
    first.labels["app"] = "web"
    assert {} == second.labels


def test_a_record_that_contains_itself_has_a_repr() -> None:
    """The repr of the inner one is cut."""
    named = Named("a")
    named.labels["self"] = named  # type: ignore[assignment]
    assert "Named(name='a', labels={'self': ...})" == repr(named)


def test_making_records_takes_a_part_of_the_time() -> None:
    """Otherwise this module would not be needed: `dataclasses` of Python 3.13 may be as fast one day."""
    form = ClassForm((_PLAIN,) * 5, {"frozen": True, "slots": True}, ())

    def measure(make: Any) -> float:
        started = time.process_time()
        for _ in range(30):
            form.make(make)
        return time.process_time() - started

    standard, ours = (min(measure(make) for _ in range(3)) for make in _MAKE.values())
    assert ours < standard * 0.6


def test_all_records_are_made_the_same_way() -> None:
    """No module takes the decorator of the standard library."""
    folder = Path(scanner.__file__).parent
    texts = {path: path.read_text() for path in folder.rglob("*.py") if path != folder / "records.py"}
    assert [] == [path for path, text in texts.items() if "dataclasses.dataclass" in text or _imports_standard(text)]


def _imports_standard(text: str) -> bool:
    lines = [line.split() for line in text.splitlines() if line.startswith("from dataclasses import ")]
    return any("dataclass" in [word.strip(",") for word in words] for words in lines)

"""Rules by type: which parts of a document a walk visits."""

from __future__ import annotations

import gc
import weakref

import pytest

from scanner.model.json import Json, JsonObject
from scanner.mutate.schema import Schema
from scanner.mutate.walk import RuleSet, fill_absent

TYPES: list[Json] = [
    {"f": {"child": 1, "other": 3}},
    {"f": {"parent": 0, "leaf": {"e": 2}}},
    {"f": {"name": "s"}},
    {"f": {"text": "s", "same": 3}},
]
NAMES = ("root", "middle", "leaf", "plain")
DOCUMENT: JsonObject = {
    "child": {"leaf": [{}], "parent": {"child": {"leaf": [{"name": "given"}]}}},
    "other": {"same": {"text": "t"}},
}


def test_a_rule_applies_below_types_that_contain_themselves() -> None:
    """A type inside two types that contain each other is reached by each way."""
    filled = RuleSet({"leaf": fill_absent(name="n")}).apply(Schema(0, TYPES, NAMES), DOCUMENT)

    assert {
        "child": {"leaf": [{"name": "n"}], "parent": {"child": {"leaf": [{"name": "given"}]}}},
        "other": {"same": {"text": "t"}},
    } == filled


@pytest.mark.parametrize("root", range(4))
def test_a_document_without_a_type_of_a_rule_stays(root: int) -> None:
    """The same document comes back, whichever type the walk begins with."""
    rules = RuleSet({"absent": fill_absent(name="n")})

    assert DOCUMENT is rules.apply(Schema(root, TYPES, NAMES), DOCUMENT)


def test_the_order_of_documents_does_not_matter() -> None:
    """What is known of the types inside the first one holds for the others."""
    rules = RuleSet({"plain": fill_absent(text="n")})
    first = rules.apply(Schema(1, TYPES, NAMES), {"parent": {"other": {}}})

    assert {"parent": {"other": {"text": "n"}}} == first
    assert {"other": {"text": "n"}} == rules.apply(Schema(0, TYPES, NAMES), {"other": {}})
    assert {"name": "x"} == rules.apply(Schema(2, TYPES, NAMES), {"name": "x"})


class Weakly(dict[str, Json]):
    """A document to which a weak reference can be made."""


def test_only_the_latest_documents_are_remembered() -> None:
    """Memory does not grow with the number of documents; the newest result comes back without another walk."""
    rules, schema = RuleSet({"plain": fill_absent(text="n")}), Schema(0, TYPES, NAMES)
    documents = [Weakly(other={"number": number}) for number in range(1000)]
    results = [rules.apply(schema, document) for document in documents]
    references = [weakref.ref(document) for document in documents]

    assert results[-1] is rules.apply(schema, documents[-1])
    documents.clear()
    gc.collect()
    assert sum(reference() is not None for reference in references) < 300

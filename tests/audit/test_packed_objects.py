"""Facts about the stored form of examined objects."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scanner.audit.population import pack, unpack
from scanner.model.population import Controller, PopulationMember
from scanner.model.resource import Kind

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
pairs = st.dictionaries(texts, texts, max_size=3).map(lambda both: tuple(sorted(both.items())))
controllers = st.none() | st.builds(Controller, texts, texts, texts, texts)
objects = st.builds(PopulationMember, st.just(PODS), texts, texts, texts, controllers, pairs, pairs, texts)


@given(st.lists(objects, max_size=8))
def test_staged_objects_are_read_unchanged(page: list[PopulationMember]) -> None:
    """Their order is the same."""
    assert page == [*unpack(PODS, pack(page))]


def test_a_text_that_databases_reject_is_cleaned() -> None:
    """NUL and lone surrogates are replaced in every field."""
    bad = "a\0\ud800"
    page = [PopulationMember(PODS, bad, bad, bad, Controller(bad, bad, bad, bad), ((bad, bad),), ((bad, bad),), bad)]
    fit = "a\ufffd\ufffd"
    expected = PopulationMember(PODS, fit, fit, fit, Controller(fit, fit, fit, fit), ((fit, fit),), ((fit, fit),), fit)
    assert [expected] == [*unpack(PODS, pack(page))]


def test_a_page_of_pods_is_small() -> None:
    """An object takes less than 80 bytes, of which 16 are those of its UID."""
    page = [
        PopulationMember(
            PODS, f"team-{number % 60}", f"checkout-6b7f9c-{number * 7919 % 99991:05x}", f"{number * 2654435761 % 2**32:08x}-aaaa-4bbb-8ccc-{number * 40503 % 2**48:012x}",
            Controller("apps/v1", "ReplicaSet", f"checkout-6b7f9c{number // 10}", f"{number // 10 * 2654435761 % 2**32:08x}-aaaa-4bbb-8ccc-000000000000"),
            (("app.kubernetes.io/name", "checkout"), ("team", f"team-{number % 60}")), (), "6b7f9c",
        )
        for number in range(500)
    ]  # fmt: skip
    assert 80 * len(page) > len(pack(page))

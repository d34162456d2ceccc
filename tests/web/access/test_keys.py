"""Keys of providers: read again when they change, but not whenever a client wishes."""

from __future__ import annotations

import pytest

from scanner.model.json import Json
from scanner.web.access.keys import Keys, key_set_of
from scanner.web.access.refused import ProviderUnavailable
from tests.web.access.apart import run_apart
from tests.web.access.provider import key_set


class Place:
    """A place of keys that counts how often it is read; None means that it does not answer."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.reads = 0

    async def load(self) -> Json:
        self.reads += 1
        if self.document is None:
            raise ProviderUnavailable("no answer")
        return self.document


def test_unknown_keys_do_not_make_a_client_read_again_and_again() -> None:
    """Two tokens with unknown keys within half a minute are one reading."""

    async def ask() -> int:
        now, place = [0.0], Place(key_set("first"))
        keys = Keys(place.load, lambda: now[0])
        known = await keys.current()
        for moment in (1.0, 2.0, 31.0, 32.0):
            now[0] = moment
            await keys.newer(known)
        return place.reads

    assert 2 == run_apart(ask())


def test_keys_are_read_again_after_an_hour() -> None:
    """A key that was withdrawn does not count for ever."""

    async def ask() -> list[str | None]:
        now, place = [0.0], Place(key_set("first"))
        keys = Keys(place.load, lambda: now[0])
        await keys.current()
        place.document, now[0] = key_set("second"), 3_601.0
        return [key.kid for key in await keys.current()]

    assert ["second"] == run_apart(ask())


def test_keys_stay_while_their_place_does_not_answer() -> None:
    """A provider that is away for a while locks no user out."""

    async def ask() -> list[str | None]:
        now, place = [0.0], Place(key_set("first"))
        keys = Keys(place.load, lambda: now[0])
        await keys.current()
        place.document, now[0] = None, 3_601.0
        return [key.kid for key in await keys.current()]

    assert ["first"] == run_apart(ask())


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"keys": "x"},
        {"keys": [1]},
        {"keys": [{"kty": "oct", "k": "eA"}]},
        {"keys": [{"kty": "RSA", "n": "?", "e": 1}]},
    ],
)
def test_a_document_without_keys_is_an_error(document: Json) -> None:
    """Secret keys are none, and neither are broken ones."""
    with pytest.raises(ProviderUnavailable, match="no key that can verify signatures"):
        key_set_of(document)


def test_keys_for_encryption_are_left_out() -> None:
    """They sign nothing."""
    [public] = key_set("first")["keys"]  # type: ignore[index,call-overload,misc]
    with pytest.raises(ProviderUnavailable):
        key_set_of({"keys": [{**public, "use": "enc"}]})  # type: ignore[dict-item]

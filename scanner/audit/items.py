"""The items of a page of a list, decoded as kube-apiserver decodes them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Final

import msgspec
import orjson

from scanner.cel.stack import run_with_room
from scanner.model.json import Json, as_object
from scanner.model.resource import METADATA_ONLY, Kind, Page
from scanner.model.withheld import Place, mark_withheld

# The possible start of a JSON integer; digits within a checksum do not count.
_LONG_NUMBER = re.compile(rb"(?:^|[\s:,\[-])[0-9]{19}")


_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else ord(" ") for byte in range(256))  # noqa: PLR2004


_LONG_RUN = b"0" * 19


_STRIDE = 4


_SAMPLE = b"0" * (19 // _STRIDE)


_CERTAIN = (19 // _STRIDE - 1) * _STRIDE + 1
"""Bytes from the first sample to the last, all of them digits of the run."""


_RARE = 1000
"""With more than one sample in so many bytes, a search of the whole text is faster."""


_DIGIT = b"0123456789"


_LONGEST_CHECKED = 100
"""Digits in a row whose beginning is searched for."""


_BEFORE_NUMBER = frozenset((b"", *(bytes((byte,)) for byte in b"\t\n\v\f\r :,[-")))
"""The bytes before the digits of an integer, as in `_LONG_NUMBER`."""


_INT64 = 2**63


_QUOTED = 200


def find_item_fault(kind: Kind, item: Json, *, metadata_only: bool = False) -> str:
    """The reason why an item of a list is no object of its kind, or an empty string. Lists of built-in kinds omit the kind.

    With `metadata_only` the item may also be the metadata of an object, which does not name the kind.
    """
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(metadata, dict):
        return "an item of the list has no metadata"
    api_version = kind.api_version
    stated = item.get("apiVersion") or api_version, item.get("kind") or kind.kind
    if stated != (api_version, kind.kind) and not (metadata_only and stated == METADATA_ONLY):
        return f"an item of the list is another object: {stated[0]} {stated[1]}"[:_QUOTED]
    return "" if metadata.get("name") else "an item of the list has no name"


class _RawList(msgspec.Struct):
    """The part of a list that decoding needs: the positions of its items in the text."""

    items: list[msgspec.Raw] | None


_LIST = msgspec.json.Decoder(_RawList)


class _WithheldPlaces(msgspec.Struct):
    """The places that a snapshot withholds from the items of a page, by the index of the item."""

    withheld: dict[int, list[list[str | int]]] = {}


_WITHHELD = msgspec.json.Decoder(_WithheldPlaces)


def decode_items(page: Page, *, withheld: bool = False) -> Iterator[Json]:
    """The items of a page as JSON values, one after the other; `withheld` parts of a page of a snapshot are marked.

    Raises ValueError for a text that is not a list of items.
    """
    places = find_withheld(page) if withheld else {}
    read_item = decode_item if may_have_long_numbers(page.data) else orjson.loads
    for index, text in enumerate(split_items(page)):
        item = read_item(text)
        mark_withheld(item, places.get(index, ()))
        yield item


def find_withheld(page: Page) -> dict[int, list[Place]]:
    """The places that a snapshot withholds, by the index of the item. Raises ValueError for a page of another form."""
    try:
        document = run_with_room(lambda: _WITHHELD.decode(page.data))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return {index: [tuple(place) for place in places] for index, places in document.withheld.items()}


def split_items(page: Page) -> list[memoryview]:
    """The JSON texts of a page's items, in their order and without a copy.

    Raises ValueError for a text that is not a list of items.
    """
    try:
        document = run_with_room(lambda: _LIST.decode(page.data))
    except msgspec.ValidationError:
        raise ValueError("it has no list of items") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return [memoryview(item) for item in document.items or ()]


def decode_item(text: memoryview) -> Json:
    """The value of a JSON text, with integers beyond 64 bits as doubles. Raises ValueError for any other text."""
    value: Json = orjson.loads(text)
    return _convert_long_numbers(value) if may_have_long_numbers(bytes(text)) and _LONG_NUMBER.search(text) else value


def may_have_long_numbers(text: bytes) -> bool:
    """Return whether the text may have an integer of 19 digits; digits within a checksum do not count.

    Of 19 bytes in a row, four are at multiples of 4: only between four digits are the bytes of the text read.
    """
    sampled = text[::_STRIDE].translate(_DIGITS)
    at = sampled.find(_SAMPLE)
    for _ in range(len(text) // _RARE):
        if at < 0:
            return False
        first = at * _STRIDE
        if text[first : first + _CERTAIN].isdigit() and _may_be_long_number(text, first):
            return True
        at = sampled.find(_SAMPLE, at + 1)
    return at >= 0 and _LONG_RUN in text.translate(_DIGITS)


def _may_be_long_number(text: bytes, at: int) -> bool:
    """Return whether the digits around a place may be an integer of 19 digits, given the byte before them."""
    before = text[max(0, at - _LONGEST_CHECKED) : at]
    start = at - len(before) + len(before.rstrip(_DIGIT))
    byte_before = text[max(0, start - 1) : start]
    return text[start : start + len(_LONG_RUN)].isdigit() and (byte_before.isdigit() or byte_before in _BEFORE_NUMBER)


def _convert_long_numbers(value: Json) -> Json:
    """Convert integers beyond 64 bits to doubles, as the API server's decoder does."""
    if isinstance(value, dict):
        return {key: _convert_long_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_convert_long_numbers(item) for item in value]
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return float(value)
    return value


# The digest of a page as the server sent it, by which a later reader can show which pages a scan read.
#
# The digest of a page of Secrets covers the items without their data, and without their annotations, which may have
# copies of it: otherwise a reader who knows the rest of a page could guess a short secret.

UNKNOWN: Final = bytes(32)
"""The digest of a page of Secrets that could not be decoded, and so not be redacted."""

_DATA: Final = frozenset({"data", "stringData"})


def digest_page(page: Page) -> bytes:
    """The SHA-256 of the bytes of a page, 32 bytes; of a page of Secrets, of its items without data and annotations."""
    if (page.kind.group, page.kind.kind) != ("", "Secret"):
        return hashlib.sha256(page.data).digest()
    digest = hashlib.sha256()
    try:
        for text in _write_without_data(page):
            digest.update(text)
    except (ValueError, TypeError):
        return UNKNOWN
    return digest.digest()


def _write_without_data(page: Page) -> Iterator[bytes]:
    """The items of a page as lines of JSON, without data. Raises ValueError and TypeError for what cannot be decoded or written."""
    for text in split_items(page):
        yield orjson.dumps(_remove_data(decode_item(text)), option=orjson.OPT_APPEND_NEWLINE)


def _remove_data(item: Json) -> Json:
    secret = {key: value for key, value in as_object(item).items() if key not in _DATA}
    metadata = {key: value for key, value in as_object(secret.get("metadata")).items() if key != "annotations"}
    return {**secret, "metadata": metadata}

"""Facts about decoded JSON and its texts."""

from __future__ import annotations

import tracemalloc

import orjson

from scanner.model.json import compact


def test_compact_bytes_hold_no_spare_memory() -> None:
    """A thousand texts of a hundred bytes take a few hundred kilobytes, not four megabytes."""
    tracemalloc.start()
    texts = [compact(orjson.dumps(f"{number:0100}")) for number in range(1_000)]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert b'"' + b"0" * 100 + b'"' == texts[0]
    assert 250_000 > held

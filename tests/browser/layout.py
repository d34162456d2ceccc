"""Where the first row of a page stands, and which words of its cells are broken: what tests of the report and of `assay serve` measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from playwright.sync_api import Page

from tests.thorough import FULL

WINDOWS: Final = {(1400, 900): 300, (390, 844): 420}
"""The sizes of windows, on a desk and on a phone, and the highest place of the first row of a list, in pixels."""
MODES: Final = [("light", 1400), ("dark", 390), *([("dark", 1400), ("light", 390)] if FULL else [])]
"""The schemes of colours and the widths of windows: each of them once, or in every pair."""
_FIRST_ROW: Final = """
() => {
  const rows = [...document.querySelectorAll("main tbody tr")].filter(each => each.checkVisibility());
  return rows.length ? rows[0].getBoundingClientRect().top + scrollY : null;
}
"""
_BROKEN: Final = r"""
() => {
  const lines = range => new Set(
    [...range.getClientRects()].filter(each => each.width > 1).map(each => Math.round(each.top / 6))).size;
  const range = document.createRange(), broken = [];
  for (const cell of document.querySelectorAll("main td, main th")) {
    if (!cell.checkVisibility()) continue;
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      if (text.parentElement.closest("code, pre, .sr, .same .k-what")) continue;
      for (const part of text.data.matchAll(/\S+/g)) {
        if (part[0].length > 30) continue;
        for (const word of part[0].matchAll(/[\p{L}\p{N}]+/gu)) {
          range.setStart(text, part.index + word.index);
          range.setEnd(text, part.index + word.index + word[0].length);
          if (word[0].length <= 16 && lines(range) > 1) broken.push(word[0]);
        }
      }
    }
    for (const time of cell.querySelectorAll("time")) {
      range.selectNodeContents(time);
      if (lines(range) > 1) broken.push(time.textContent);
    }
  }
  return broken;
}
"""
"""Long names without spaces may be broken: of texts of more than 30 characters, and words of more than 16. A time stands on one line."""


def low_lists(page: Page, width: int, height: int, addresses: Iterator[str]) -> Iterator[tuple[str, int | None]]:
    """The pages whose list begins too low in a window, or that have no list, with the place of its first row."""
    page.set_viewport_size({"width": width, "height": height})
    for address in addresses:
        page.goto(address)
        place = page.evaluate(_FIRST_ROW)
        if place is None or place >= WINDOWS[width, height]:
            yield address, place


def broken_words(page: Page, width: int, height: int, addresses: Iterator[str]) -> Iterator[tuple[str, list[str]]]:
    """The pages with a broken word in a cell, and these words."""
    page.set_viewport_size({"width": width, "height": height})
    for address in addresses:
        page.goto(address)
        if words := page.evaluate(_BROKEN):
            yield address, words

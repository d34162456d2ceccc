"""The pages of the places of findings: `f/<first three digits of the ids>.html`, each under 500 kB.

Findings of a page that would be larger move to `f/<digits>-2.html` and so on, in the order of their ids. The first page keeps an
anchor for each of them, with a link, so that the address of a finding never depends on the number of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from scanner.report.frames import Frame, place
from scanner.report.halves import in_halves
from scanner.report.place_texts import PlaceTexts
from scanner.report.places import PlacedFinding
from scanner.report.site import Site
from scanner.report.spill import Spill

FOLDER: Final = "f"
PREFIX: Final = 3
_HEAVIEST: Final = 300_000
_DIGITS: Final = "0123456789abcdef"


def place_path(identifier: str) -> str:
    """The page of a finding, from the top folder."""
    return f"{FOLDER}/{identifier[:PREFIX]}.html"


@dataclass(slots=True)
class _Part:
    """The findings of one page, and the texts that it shows: checks by policy, and params."""

    findings: list[PlacedFinding] = field(default_factory=list)
    policies: dict[int, set[int]] = field(default_factory=dict)
    params: set[int] = field(default_factory=set)
    size: int = 0


class PlacePages:
    """Collects the places of findings on disk, and writes their pages."""

    def __init__(self, site: Site, spill: Spill, texts: PlaceTexts) -> None:
        macros: Any = site.templates.get_template("places.html").module
        self._site, self._spill, self._texts = site, spill, texts
        self._moved: Final = macros.moved
        self._frame: Final = Frame(
            site.page(
                f"{FOLDER}/",
                "place_page.html",
                place("title"),
                **{name: place(name) for name in ("heading", "places", "texts")},
            )
        )

    def add(self, placed: PlacedFinding) -> None:
        """Keep a place until its page is written."""
        self._spill.add(_group(placed.id), "\t".join(map(str, placed)))

    def write(self) -> None:
        """Write all pages, in two processes."""
        (self._site.folder / FOLDER).mkdir()
        self._spill.flush()
        groups = [f"{first}{second}" for first in _DIGITS for second in _DIGITS]
        in_halves(lambda half: self._write_groups(groups[half::2]))

    def _write_groups(self, groups: Iterable[str]) -> None:
        for digits in groups:
            placed = sorted(map(_read, self._spill.rows(_group(digits))))
            for prefix, findings in groupby(placed, key=lambda each: each.id[:PREFIX]):
                self._write_prefix(prefix, list(self._parts(findings)))

    def _parts(self, findings: Iterable[PlacedFinding]) -> Iterator[_Part]:
        part = _Part()
        for placed in findings:
            if part.findings and part.size + self._more(part, placed) > _HEAVIEST:
                yield part
                part = _Part()
            part.size += self._more(part, placed)
            part.findings.append(placed)
            part.policies.setdefault(placed.policy, set()).add(placed.check)
            if placed.param >= 0:
                part.params.add(placed.param)
        yield part

    def _more(self, part: _Part, placed: PlacedFinding) -> int:
        """The bytes by which a finding makes a page larger, with the texts that the page does not show yet."""
        size = _bytes(placed.html)
        if placed.policy not in part.policies:
            size += _bytes(self._texts.policy_html(placed.policy, (placed.check,)))
        if placed.param >= 0 and placed.param not in part.params:
            size += _bytes(self._texts.param_html(placed.param))
        return size

    def _write_prefix(self, prefix: str, parts: list[_Part]) -> None:
        for number, part in enumerate(parts):
            moved = (
                []
                if number
                else [
                    str(self._moved(each.id, _file(prefix, place)))
                    for place, other in enumerate(parts[1:], 1)
                    for each in other.findings
                ]
            )
            shown = f"{prefix}…{f', page {number + 1} of {len(parts)}' if len(parts) > 1 else ''}"
            page = self._frame.filled(
                {
                    "title": f"Findings {shown}",
                    "heading": shown,
                    "places": "\n".join((*(each.html for each in part.findings), *moved)),
                    "texts": "\n".join(self._part_texts(part)),
                }
            )
            (self._site.folder / FOLDER / _file(prefix, number)).write_text(page, "utf-8", newline="\n")

    def _part_texts(self, part: _Part) -> Iterator[str]:
        for number, checks in sorted(part.policies.items()):
            yield self._texts.policy_html(number, checks)
        for number in sorted(part.params):
            yield self._texts.param_html(number)


def _file(prefix: str, number: int) -> str:
    return f"{prefix}-{number + 1}.html" if number else f"{prefix}.html"


def _group(identifier: str) -> str:
    return f"place {identifier[:2]}"


def _read(row: str) -> PlacedFinding:
    identifier, policy, check, param, html = row.split("\t", 4)
    return PlacedFinding(identifier, int(policy), int(check), int(param), html)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())

"""The pages of the places of findings: `f/<first three digits of the ids>.html`, each under 500 kB.

Findings of a page that would be larger move to `f/<digits>-2.html` and so on, in the order of their ids. The first page keeps an
anchor for each of them, with a link, so that the address of a finding never depends on the number of the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from scanner.report.group_files import GroupReader, GroupWriter
from scanner.report.html.halves import work_in_halves
from scanner.report.html.places import PlacedFinding, PlaceTexts
from scanner.report.html.site import Site, byte_size

FOLDER: Final = "f"
PREFIX: Final = 3
_HEAVIEST: Final = 300_000
_TEXTS: Final = 16_000
"""The characters of policy texts on a page: of many or long ones, it shows the lines around the checks."""
_SHORTEST: Final = 1_000
_DIGITS: Final = "0123456789abcdef"


def place_path(identifier: str) -> str:
    """The page of a finding, from the top folder."""
    return f"{FOLDER}/{identifier[:PREFIX]}.html"


def keep_place(spill: GroupWriter, placed: PlacedFinding) -> None:
    """Keep a place until its page is written."""
    spill.add(_group(placed.id), "\t".join(map(str, placed)))


@dataclass(slots=True)
class _PagePart:
    """The findings of one page, and the texts that it shows: checks by policy, and params."""

    findings: list[PlacedFinding] = field(default_factory=list)
    policies: dict[int, set[int]] = field(default_factory=dict)
    params: set[int] = field(default_factory=set)
    size: int = 0


class PlacePages:
    """Makes the pages of the places of findings."""

    def __init__(self, site: Site, texts: PlaceTexts) -> None:
        macros: Any = site.templates.get_template("places.html").module
        self._texts = texts
        self._moved: Final = macros.moved
        self._elsewhere: Final = macros.elsewhere
        names = "heading", "places", "texts"
        self._frame: Final = site.frame(f"{FOLDER}/", "place_page.html", names)

    def write(self, top: Path, spilled: GroupReader, elsewhere: Mapping[str, str]) -> None:
        """Write the pages of the places that were collected into a folder of `top`, in two processes.

        `elsewhere` are the addresses of the pages of other findings, by id.
        """
        folder = top / FOLDER
        folder.mkdir()
        groups = [f"{first}{second}" for first in _DIGITS for second in _DIGITS]
        work_in_halves(lambda half: self._write_groups(folder, spilled, groups[half::2], elsewhere))

    def _write_groups(
        self, folder: Path, spilled: GroupReader, groups: Iterable[str], elsewhere: Mapping[str, str]
    ) -> None:
        for digits in groups:
            by_prefix: dict[str, tuple[list[PlacedFinding], dict[str, str]]] = defaultdict(lambda: ([], {}))
            for placed in sorted(map(_read, spilled.rows(_group(digits)))):
                by_prefix[placed.id[:PREFIX]][0].append(placed)
            for identifier, address in elsewhere.items():
                if identifier.startswith(digits):
                    by_prefix[identifier[:PREFIX]][1][identifier] = address
            for prefix, (findings, others) in by_prefix.items():
                for name, page in self.pages(prefix, findings, others):
                    (folder / name).write_text(page, "utf-8", newline="\n")

    def pages(
        self, prefix: str, findings: Iterable[PlacedFinding], elsewhere: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[tuple[str, str]]:
        """The file names of the pages of a prefix, and their HTML; `findings` are all those of the prefix, by id.

        `elsewhere` are the addresses of the pages of other findings, by id.
        """
        return self._pages(prefix, list(self._parts(findings)), elsewhere)

    def _parts(self, findings: Iterable[PlacedFinding]) -> Iterator[_PagePart]:
        """The findings cut into pages of at most `_HEAVIEST` bytes; at least one page."""
        part = _PagePart()
        for placed in findings:
            if part.findings and part.size + self._measure(part, placed) > _HEAVIEST:
                yield part
                part = _PagePart()
            part.size += self._measure(part, placed)
            part.findings.append(placed)
            part.policies.setdefault(placed.policy, set()).add(placed.check)
            if placed.param >= 0:
                part.params.add(placed.param)
        yield part

    def _measure(self, part: _PagePart, placed: PlacedFinding) -> int:
        """The bytes by which a finding makes a page larger, with the texts that the page does not show yet."""
        size = byte_size(placed.html)
        if placed.policy not in part.policies:
            size += byte_size(self._texts.policy_html(placed.policy, (placed.check,), _TEXTS))
        if placed.param >= 0 and placed.param not in part.params:
            size += byte_size(self._texts.param_html(placed.param))
        return size

    def _pages(self, prefix: str, parts: list[_PagePart], elsewhere: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The file names of the pages of a prefix, and their HTML."""
        for number, part in enumerate(parts):
            moved = (
                []
                if number
                else [
                    str(self._moved(each.id, _file(prefix, place)))
                    for place, other in enumerate(parts[1:], 1)
                    for each in other.findings
                ]
                + [str(self._elsewhere(*each)) for each in elsewhere.items()]
            )
            shown = f"{prefix}…{f', page {number + 1} of {len(parts)}' if len(parts) > 1 else ''}"
            places = "\n".join((*(each.html for each in part.findings), *moved))
            texts = "\n".join(self._part_texts(part))
            yield _file(prefix, number), self._frame.fill((f"Findings {shown}", shown, places, texts))

    def _part_texts(self, part: _PagePart) -> Iterator[str]:
        for number, checks in sorted(part.policies.items()):
            yield self._texts.policy_html(number, checks, _share(len(part.policies)))
        for number in sorted(part.params):
            yield self._texts.param_html(number)


def _share(policies: int) -> int:
    """The characters that each text of a page may have: a half, a quarter … of all, so that few forms of a text are needed."""
    share = _TEXTS
    while share > _SHORTEST and share * policies > _TEXTS:
        share //= 2
    return share


def _file(prefix: str, number: int) -> str:
    return f"{prefix}-{number + 1}.html" if number else f"{prefix}.html"


def _group(identifier: str) -> str:
    return f"place {identifier[:2]}"


def _read(row: str) -> PlacedFinding:
    identifier, policy, check, param, html = row.split("\t", 4)
    return PlacedFinding(identifier, int(policy), int(check), int(param), html)

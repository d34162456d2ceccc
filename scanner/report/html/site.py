"""The pages of the HTML report: their paths, their shared parts, and the writing of a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from jinja2 import Environment

from scanner.model.policy import PolicyKey
from scanner.report.document.by_policy import PolicySection
from scanner.report.document.document import Document, Provenance
from scanner.report.document.notes import list_missed, manifest_notes
from scanner.report.document.sentences import gaps_of, is_compared, sentences_of, verdict_parts
from scanner.report.html.pieces import Pieces, place
from scanner.report.html.templates import content_hash, environment
from scanner.report.text.safe_text import LONGEST

# Splits long lists into pages of at most 500 rows and under 500 kB of HTML, which a browser opens at once.
#
# The weight of a row is an upper bound for its bytes: escapes can make hostile text ten times as long.

ItemT = TypeVar("ItemT")

ROWS = 500
HEAVIEST = 350_000

_ROW_WEIGHT = 800
_SPELLED = 10
_ESCAPED = 5
_ESCAPES = "&<>\"'"


@dataclass(frozen=True, slots=True)
class Batch(Generic[ItemT]):
    """The rows of page `number`, from 1; `first` is the number of its first row in the list. `more` pages may follow."""

    number: int
    first: int
    rows: list[ItemT]
    more: bool

    @property
    def last(self) -> int:
        """The number of the last row; `first - 1` on an empty page."""
        return self.first + len(self.rows) - 1


def split_pages(items: Iterable[ItemT], weigh: Callable[[ItemT], int], *, most: int = ROWS) -> Iterator[Batch[ItemT]]:
    """The pages of a list in its order, at least one, with `most` rows each; `weigh` returns the weight of an item, in bytes."""
    number, first = count(1), 1
    rows: list[ItemT] = []
    full = 0
    for item in items:
        more = weigh(item)
        if rows and (len(rows) == most or full + more > HEAVIEST):
            yield Batch(next(number), first, rows, more=True)
            first, rows, full = first + len(rows), [], 0
        rows.append(item)
        full += more
    yield Batch(next(number), first, rows, more=False)


def weight(*texts: str) -> int:
    """The weight of a row that shows these texts: an upper bound for its bytes of HTML."""
    return _ROW_WEIGHT + sum(_weight(text) for text in texts)


def byte_size(text: str) -> int:
    """The bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def _weight(text: str) -> int:
    shown = text[:LONGEST]
    if not (shown.isascii() and shown.isprintable()):
        return len(shown) * _SPELLED
    return len(shown) + sum(map(shown.count, _ESCAPES)) * (_ESCAPED - 1)


_SPACE = re.compile(r"\s+")
_AROUND = re.compile(r" ?([{};,]) ?")

_CLUSTER_SCOPED = "_cluster"
_UNOWNED = "_unowned"


@dataclass(frozen=True, slots=True)
class Site:
    """The pages of a report. Paths are relative to its top folder, with `/` between their parts."""

    document: Document
    templates: Environment
    shared: Mapping[str, object]
    sections: Mapping[PolicyKey, PolicySection]
    policies: dict[PolicyKey, str]
    namespaces: dict[str, str]
    owners: dict[str, str]
    controls: dict[str, str]
    """By the name of the framework and the id of the control, with a slash between them."""

    def policy_path(self, policy: PolicyKey, number: int = 1) -> str:
        """The path of page `number` of a policy."""
        return add_number(f"policies/{self.policies[policy]}.html", number)

    def namespace_path(self, namespace: str, number: int = 1) -> str:
        """The path of page `number` of a namespace, or of the cluster-scoped objects."""
        slug = self.namespaces[namespace] if namespace else _CLUSTER_SCOPED
        return add_number(f"namespaces/{slug}.html", number)

    def owner_path(self, owner: str) -> str:
        """The path of the page of an owner, or of the unowned objects."""
        return f"owners/{self.owners[owner] if owner else _UNOWNED}.html"

    def control_path(self, control: str) -> str:
        """The path of the page of a control, by the name of its framework and its id, as in `house/4`."""
        return f"controls/{self.controls[control]}.html"

    def section(self, policy: PolicyKey) -> PolicySection:
        """The section of a policy. Raises ValueError for one whose findings were not counted."""
        if policy not in self.sections:
            raise ValueError(f"findings of {policy[1]} were not counted")
        return self.sections[policy]

    def page(self, path: str, template: str, title: str, **context: object) -> str:
        """Render a template."""
        return self.templates.get_template(template).render(
            title=title,
            path=path,
            section=section_of(path),
            up="../" * path.count("/"),
            policy_path=self.policy_path,
            namespace_path=self.namespace_path,
            owner_path=self.owner_path,
            control_path=self.control_path,
            **self.shared,
            **context,
        )

    def frame(self, path: str, template: str, names: Sequence[str], **context: object) -> Pieces:
        """A page with places for its title and for HTML with these names, in this order."""
        places = {name: place(number) for number, name in enumerate(names, 1)}
        return Pieces(self.page(path, template, place(0), **places, **context))

    def with_style(self, pages: Literal["places", "list"]) -> Site:
        """The site with a style sheet that lacks the rules of other pages.

        Row 8: with the whole sheet, the report of 100,000 findings has 449 MiB instead of 397, of 400 allowed.
        """
        return replace(self, shared={**self.shared, **style_of(self.templates, self.document.provenance, pages)})


@dataclass(frozen=True, slots=True)
class Pager:
    """The position of a page in its list. `before` and `after` are the file names of its neighbours, or empty."""

    first: int
    last: int
    total: int
    before: str
    after: str

    @classmethod
    def of(cls, path: str, batch: Batch[ItemT], total: int) -> Pager:
        """The position of a batch in the list whose first page is `path`."""
        name = path.rpartition("/")[2]
        return cls(
            first=batch.first,
            last=batch.last,
            total=total,
            before=add_number(name, batch.number - 1) if batch.number > 1 else "",
            after=add_number(name, batch.number + 1) if batch.more else "",
        )


def site_of(document: Document, owners: Iterable[str]) -> Site:
    """The site for a document: the paths of its pages, of those of some owners, too, its templates and its style sheet."""
    templates = environment()
    titles = {policy.key: document.title(policy.key) for policy in document.policies}
    slugs = slugs_of(titles.values())
    policies = {key: slugs[title] for key, title in titles.items()}
    shared: dict[str, object] = {
        "document": document,
        "web": None,
        "sentences": sentences_of(document),
        "missed": list_missed(document),
        "manifest_notes": manifest_notes(document),
        "navigation": navigation_of(document),
        "verdict": verdict_parts(document),
        **style_of(templates, document.provenance),
        "policy_slugs": policies,
        "tables_show": 100,
        "few_shown": 10,
        "namespaces_show": 500,
        "unseen_shown": 12,
    }
    controls = [f"{framework.name}/{control.id}" for framework in document.controls for control in framework.controls]
    return Site(
        document=document,
        templates=templates,
        shared=shared,
        sections={section.key: section for section in document.policies},
        policies=policies,
        namespaces=slugs_of(section.namespace for section in document.namespaces),
        owners=slugs_of(owner for owner in owners if owner),
        controls=slugs_of(controls),
    )


def style_of(templates: Environment, provenance: Provenance, only: str = "") -> dict[str, str]:
    """The style sheet of all pages, or the shorter one of some, and its source expression."""
    text = templates.get_template("style.css").render(
        web=None,
        only=only,
        scan=_css_string(provenance.scan_id),
        digest=_css_string((provenance.policy_set_digest or "not known")[:16]),
    )
    # Pages of findings are many: only their sheet is worth the shorter form.
    style = _AROUND.sub(r"\1", _SPACE.sub(" ", text)).replace(": ", ":") if only else text
    return {"style": style, "style_hash": content_hash(style)}


def _css_string(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9 .:-]", "", text)


def add_number(path: str, number: int) -> str:
    """The file name of a page of a list: `coverage.html`, `coverage_2.html`. No other page ends in an underscore and a number."""
    return path if number == 1 else f"{path.removesuffix('.html')}_{number}.html"


# The navigation of the HTML report: the summary and four groups of pages; each page shows the pages of its group (ADR 86).

_OF_FOLDERS: Final = {
    "f": "findings.html",
    "problems": "findings.html",
    "objects": "coverage.html",
    "policies": "policies.html",
    "namespaces": "namespaces.html",
    "owners": "owners.html",
    "controls": "controls.html",
}


class NavigationEntry(NamedTuple):
    """A link of the navigation; `number` is None for a page that lists nothing, and `unit` what it counts."""

    path: str
    title: str
    number: int | None = None
    unit: str = ""


class NavigationGroup(NamedTuple):
    """A group of pages; its link leads to the first one."""

    title: str
    entries: tuple[NavigationEntry, ...]

    @property
    def path(self) -> str:
        """The first page of the group."""
        return self.entries[0].path


def navigation_of(document: Document) -> tuple[NavigationGroup, ...]:
    """The groups of a report, the summary first; controls have an entry only if there are some."""
    return (
        NavigationGroup("Summary", (NavigationEntry("index.html", "Summary"),)),
        NavigationGroup("Problems", tuple(_list_problem_pages(document))),
        NavigationGroup("Rules", tuple(_list_rule_pages(document))),
        NavigationGroup("Evidence", tuple(_list_evidence_pages(document))),
        NavigationGroup("History", tuple(_list_history_pages(document))),
    )


def _list_problem_pages(document: Document) -> Iterator[NavigationEntry]:
    waivers = document.waivers
    yield NavigationEntry("findings.html", "Findings", document.problems.open, "open problems")
    yield NavigationEntry("namespaces.html", "Namespaces", len(document.namespaces))
    yield NavigationEntry("owners.html", "Owners", len(document.owners))
    yield NavigationEntry("waivers.html", "Waivers", len(waivers.lines) if waivers else None)


def _list_rule_pages(document: Document) -> Iterator[NavigationEntry]:
    controls = sum(len(framework.controls) for framework in document.controls)
    yield NavigationEntry("policies.html", "Policies", len(document.policies), "policies")
    if controls:
        yield NavigationEntry("controls.html", "Controls", controls)
        yield NavigationEntry("controls_by_namespace.html", "Controls by namespace")
    yield NavigationEntry("rules.html", "Rules in force")
    yield NavigationEntry("health.html", "Policy health", len(document.health) or None, "entries")


def _list_evidence_pages(document: Document) -> Iterator[NavigationEntry]:
    yield NavigationEntry("coverage.html", "Coverage", gaps_of(document) or None, "gaps")
    yield NavigationEntry("method.html", "Method")


def _list_history_pages(document: Document) -> Iterator[NavigationEntry]:
    changes = document.changes
    changed = changes.new + changes.reopened + changes.resolved if is_compared(document) else None
    yield NavigationEntry("changes.html", "Changes", changed)
    yield NavigationEntry("resolved.html", "Resolved")
    yield NavigationEntry("charts.html", "Charts")
    yield NavigationEntry("runs.html", "Runs")


def section_of(path: str) -> str:
    """The entry of the navigation to which a page belongs."""
    folder, slash, _ = path.partition("/")
    if slash:
        return _OF_FOLDERS[folder]
    return re.sub(r"[_-]\d+\.html$", ".html", path)


# Safe file names for arbitrary names.
#
# A name that is a safe file name is kept, as nearly every Kubernetes name is. Any other name is reduced to safe
# characters and gets a hash: it can neither leave its folder, nor be a hidden file, nor replace another file.

_SAFE = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,98}[a-z0-9])?")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$)(?:\..*)?")
"""Device names of Windows, with any ending: a report may be unpacked there."""
_UNSAFE = re.compile(r"[^a-z0-9]+")
_HASH = 12


def slugs_of(names: Iterable[str]) -> dict[str, str]:
    """A file name without ending for every name; they differ also on file systems that ignore case."""
    slugs: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(set(names), key=lambda name: (not _is_safe(name), name)):
        slugs[name] = _choose_free(name, taken)
        taken.add(slugs[name])
    return slugs


def _choose_free(name: str, taken: set[str]) -> str:
    if _is_safe(name):
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    stem = _UNSAFE.sub("-", name.lower())[:60].strip("-") or "name"
    lengths = range(_HASH, len(digest) + 1)
    return next(slug for length in lengths if (slug := f"{stem}-{digest[:length]}") not in taken)


def _is_safe(name: str) -> bool:
    return _SAFE.fullmatch(name) is not None and _RESERVED.fullmatch(name) is None

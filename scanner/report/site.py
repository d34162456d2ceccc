"""The pages of the HTML report: their paths, their shared parts, and the writing of a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from jinja2 import Environment

from scanner.model.policy import PolicyKey
from scanner.report.batches import Batch, batched
from scanner.report.by_policy import PolicySection
from scanner.report.document import Document
from scanner.report.frames import Frame, place
from scanner.report.sentences import sentences_of
from scanner.report.slugs import slugs_of
from scanner.report.styles import used_style
from scanner.report.templates import content_hash, environment

ItemT = TypeVar("ItemT")
_WORD = re.compile(r"[\w-]+")

_MORE = (
    ("new.html", "New"),
    ("resolved.html", "Resolved"),
    ("drift.html", "Drift"),
    ("namespaces.html", "Namespaces"),
    ("owners.html", "Owners"),
    ("controls.html", "Controls"),
    ("waivers.html", "Waivers"),
    ("population.html", "Population"),
    ("health.html", "Policy health"),
    ("about.html", "About"),
)
_ABOVE = {
    "new.html": "findings.html",
    "resolved.html": "findings.html",
    "drift.html": "findings.html",
    "health.html": "policies.html",
    "population.html": "coverage.html",
}
"""The pages that belong to one of the four sections."""
_CLUSTER_SCOPED = "_cluster"


@dataclass(frozen=True, slots=True)
class Site:
    """A report that is written into `folder`. Paths are relative to the folder, with `/` between their parts."""

    document: Document
    folder: Path
    templates: Environment
    shared: Mapping[str, object]
    sections: Mapping[PolicyKey, PolicySection]
    policies: dict[PolicyKey, str]
    namespaces: dict[str, str]

    def policy_path(self, policy: PolicyKey, number: int = 1) -> str:
        """The path of page `number` of a policy."""
        return _numbered(f"policies/{self.policies[policy]}.html", number)

    def namespace_path(self, namespace: str, number: int = 1) -> str:
        """The path of page `number` of a namespace, or of the cluster-scoped objects."""
        slug = self.namespaces[namespace] if namespace else _CLUSTER_SCOPED
        return _numbered(f"namespaces/{slug}.html", number)

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
            section=_section(path),
            main_section=_ABOVE.get(_section(path), _section(path)),
            up="../" * path.count("/"),
            policy_path=self.policy_path,
            namespace_path=self.namespace_path,
            **self.shared,
            **context,
        )

    def frame(self, path: str, template: str, names: Iterable[str], *, rows: str, **context: object) -> Frame:
        """The frame of pages with places of these names, and one for the title; `rows` is the template of what they are filled with.

        Its style sheet has only the rules that the words of the page and of that template can need.
        """
        places = {name: place(name) for name in names}
        page = self.page(path, template, place("title"), **places, **context)
        loader = self.templates.loader
        source = loader.get_source(self.templates, rows)[0] if loader else ""
        style = used_style(self.style, set(_WORD.findall(page.replace(self.style, "")) + _WORD.findall(source)))
        return Frame(page.replace(self.style, style).replace(content_hash(self.style), content_hash(style)))

    @property
    def style(self) -> str:
        """The style sheet of ordinary pages."""
        return str(self.shared["style"])

    def write(self, path: str, template: str, title: str, **context: object) -> None:
        """Render a template into a page."""
        (self.folder / path).write_text(self.page(path, template, title, **context), "utf-8", newline="\n")

    def write_list(
        self,
        path: str,
        title: str,
        items: Iterable[ItemT],
        *,
        total: int,
        weigh: Callable[[ItemT], int],
        template: str = "",
        **context: object,
    ) -> None:
        """Render a list, page after page; the default template has the name of the first page."""
        for batch in batched(items, weigh):
            pages = pager(path, batch, total)
            self.write(_numbered(path, batch.number), template or path, title, rows=batch.rows, pager=pages, **context)


@dataclass(frozen=True, slots=True)
class Pager:
    """The position of a page in its list. `before` and `after` are the file names of its neighbours, or empty."""

    first: int
    last: int
    total: int
    before: str
    after: str


def pager(path: str, batch: Batch[ItemT], total: int) -> Pager:
    """The position of a batch in the list whose first page is `path`."""
    name = path.rpartition("/")[2]
    return Pager(
        first=batch.first,
        last=batch.last,
        total=total,
        before=_numbered(name, batch.number - 1) if batch.number > 1 else "",
        after=_numbered(name, batch.number + 1) if batch.more else "",
    )


def site_of(document: Document, folder: Path) -> Site:
    """The site for a document: the paths of its pages, its templates and its style sheet."""
    templates = environment()
    titles = {policy.key: document.title(policy.key) for policy in document.policies}
    slugs = slugs_of(titles.values())
    policies = {key: slugs[title] for key, title in titles.items()}
    style = templates.get_template("style.css").render(scan=_css_string(document.provenance.scan_id))
    shared: dict[str, object] = {
        "document": document,
        "sentences": sentences_of(document),
        "main_sections": _main_sections(document),
        "more_sections": _more_sections(document),
        "style": style,
        "style_hash": content_hash(style),
        "policy_slugs": policies,
        "tables_show": 100,
        "namespaces_show": 500,
        "unseen_shown": 12,
    }
    for name in ("policies", "namespaces"):
        (folder / name).mkdir()
    return Site(
        document=document,
        folder=folder,
        templates=templates,
        shared=shared,
        sections={section.key: section for section in document.policies},
        policies=policies,
        namespaces=slugs_of(section.namespace for section in document.namespaces),
    )


class Section(NamedTuple):
    """An entry of the navigation; `number` is the text of a number beside it, or empty, and `unit` what it counts."""

    path: str
    title: str
    number: str = ""
    unit: str = ""


def _main_sections(document: Document) -> tuple[Section, ...]:
    """The four sections of a report with their numbers."""
    gaps = len(document.gaps) or len(document.coverage.unseen)
    return (
        Section("index.html", "Summary"),
        Section("findings.html", "Findings", f"{document.problems.open:,}", "open problems"),
        Section("policies.html", "Policies", f"{len(document.policies):,}", "policies"),
        Section("coverage.html", "Coverage", *((f"{gaps:,}", "gaps") if gaps else ())),
    )


def _more_sections(document: Document) -> tuple[Section, ...]:
    """The other pages; controls only in a report with mappings."""
    return tuple(Section(*each) for each in _MORE if each[0] != "controls.html" or document.controls)


def _section(path: str) -> str:
    """The page of the navigation to which a page belongs."""
    if path.startswith("f/"):
        return "findings.html"
    return re.sub(r"(_\d+)?\.html$|/.*", "", path) + ".html"


def _css_string(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9 .:-]", "", text)


def _numbered(path: str, number: int) -> str:
    """The file name of a page of a list: `coverage.html`, `coverage_2.html`. No other page ends in an underscore and a number."""
    return path if number == 1 else f"{path.removesuffix('.html')}_{number}.html"

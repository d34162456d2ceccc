"""The pages of the HTML report: their paths, their shared parts, and the writing of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from jinja2 import Environment

from scanner.model.policy import PolicyKey
from scanner.report.batches import Batch
from scanner.report.by_policy import PolicySection
from scanner.report.document import Document, Provenance
from scanner.report.manifest_notes import manifest_notes
from scanner.report.missed import missed
from scanner.report.navigation import navigation_of, section_of
from scanner.report.pieces import Pieces, place
from scanner.report.sentences import sentences_of, verdict_parts
from scanner.report.slugs import slugs_of
from scanner.report.templates import content_hash, environment

ItemT = TypeVar("ItemT")
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
        return numbered(f"policies/{self.policies[policy]}.html", number)

    def namespace_path(self, namespace: str, number: int = 1) -> str:
        """The path of page `number` of a namespace, or of the cluster-scoped objects."""
        slug = self.namespaces[namespace] if namespace else _CLUSTER_SCOPED
        return numbered(f"namespaces/{slug}.html", number)

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

    def styled(self, pages: Literal["places", "list"]) -> Site:
        """The site with a style sheet that lacks the rules of other pages.

        It serves benchmark 8: with the whole sheet, the report of 100,000 findings has 449 MiB instead of 397, of 400 allowed.
        """
        return replace(self, shared={**self.shared, **_style(self.templates, self.document.provenance, pages)})


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
            before=numbered(name, batch.number - 1) if batch.number > 1 else "",
            after=numbered(name, batch.number + 1) if batch.more else "",
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
        "missed": missed(document),
        "manifest_notes": manifest_notes(document),
        "navigation": navigation_of(document),
        "verdict": verdict_parts(document),
        **_style(templates, document.provenance),
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


def _style(templates: Environment, provenance: Provenance, only: str = "") -> dict[str, str]:
    """The style sheet of all pages, or the shorter one of some, and its source expression."""
    text = templates.get_template("style.css").render(
        web=None,
        only=only,
        scan=_css_string(provenance.scan_id),
        digest=_css_string((provenance.policy_set_digest or "not known")[:16]),
    )
    style = _AROUND.sub(r"\1", _SPACE.sub(" ", text)).replace(": ", ":") if only else text
    return {"style": style, "style_hash": content_hash(style)}


def _css_string(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9 .:-]", "", text)


def numbered(path: str, number: int) -> str:
    """The file name of a page of a list: `coverage.html`, `coverage_2.html`. No other page ends in an underscore and a number."""
    return path if number == 1 else f"{path.removesuffix('.html')}_{number}.html"

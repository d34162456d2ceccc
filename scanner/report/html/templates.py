"""The HTML templates and their filters.

The environment escapes every text that a template prints, after `visible` and `cut`: no template has to do so.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import scanner
from scanner.posture.severity import Severity
from scanner.report.document.coverage import TITLES as UNNEEDED_TITLES
from scanner.report.document.sentences import (
    control_notes,
    control_score,
    controls_line,
    group_namespaces,
    opinion_line,
    sums_note,
    uncovered_line,
    whole_policies_note,
    worst_controls,
)
from scanner.report.document.sources import STATES as SOURCE_STATES
from scanner.report.lists.filters import ACTIONS, SORTS, STATUSES, UNRESOLVED
from scanner.report.text.numbers import percent_ceil, percent_floor, plural
from scanner.report.text.safe_text import LONGEST, cut, visible
from scanner.report.text.times import iso, stamp
from scanner.report.text.titles import (
    AUDITABILITY,
    AUDITABILITY_MEANINGS,
    CONTROL_MEANINGS,
    CONTROL_STATES,
    HEALTH_MEANINGS,
    HEALTH_TITLES,
    NAMESPACE_MEANINGS,
    NAMESPACE_STATES,
    auditability,
    check_title,
    name_actions,
)

_COMMAND = re.compile("`([^`]+)`")
NAME = 300
NO_NAME = "(no name)"
_BRIEF = 2_000
_LONG = 40_000


@cache
def environment() -> Environment:
    """The environment in which every page is rendered. It is the same for every document, so it is made once."""
    templates = Environment(
        loader=FileSystemLoader(_folder()),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_make_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters.update(
        n="{:,}".format,
        name=_name,
        prose=_prose,
        brief_prose=lambda text: _prose(text, _BRIEF),
        long_prose=lambda text: _prose(text, _LONG),
        stamp=stamp,
        words=_words,
        iso=iso,
        plural=plural,
        units=_join_unit,
        commands=_mark_commands,
        actions=name_actions,
        percent_floor=lambda share: _join_unit(percent_floor(share)),
        percent_ceil=lambda share: _join_unit(percent_ceil(share)),
    )
    templates.globals.update(
        findings_link=findings_link,
        severities=tuple(map(str, Severity)),
        action_filters=ACTIONS,
        status_filters=STATUSES,
        sorts=SORTS,
        result_words={word: _word(templates, word) for word in ("Violated", "Errored", "Drift")},
        check_title=check_title,
        opinion_line=opinion_line,
        controls_line=controls_line,
        group_namespaces=group_namespaces,
        uncovered_line=uncovered_line,
        namespace_states=NAMESPACE_STATES,
        namespace_meanings=NAMESPACE_MEANINGS,
        sums_note=sums_note,
        control_notes=control_notes,
        control_score=control_score,
        whole_policies_note=whole_policies_note,
        worst_controls=worst_controls,
        control_states=CONTROL_STATES,
        control_meanings=CONTROL_MEANINGS,
        health_titles=HEALTH_TITLES,
        health_meanings=HEALTH_MEANINGS,
        auditability=auditability,
        source_parts_show=20,
        sources_unfolded=25,
        source_states=SOURCE_STATES,
        unneeded_titles=UNNEEDED_TITLES,
        auditability_meanings={
            AUDITABILITY[auditability_class]: meaning for auditability_class, meaning in AUDITABILITY_MEANINGS.items()
        },
    )
    return templates


def findings_link(**filters: str) -> str:
    """The list of findings with filters, from the top folder of a static report: `findings.html#action=Deny&namespace=prod`.

    The keys are those of the list's fields; a namespace of cluster-scoped objects is `_cluster`, no owner `unowned`. Without a
    `status`, the list shows all that is not resolved, as the numbers of findings beside links count it.
    """
    return f"findings.html#{_write_filters(filters)}"


def served_findings_link(**filters: str) -> str:
    """The same list on a page of `assay serve`, which reads the filters itself: `findings.html?action=Deny&namespace=prod`."""
    return f"findings.html?{_write_filters(filters)}"


def _write_filters(filters: Mapping[str, str]) -> str:
    status = filters.get("status", UNRESOLVED)
    return urlencode({key: visible(cut(value, NAME)) for key, value in {**filters, "status": status}.items()})


def content_hash(text: str) -> str:
    """The source expression of a style sheet or script for a Content-Security-Policy, so that no other one is applied."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _folder() -> Path:
    """The folder of the templates: inside the installed package, or beside it in a checkout."""
    package = Path(scanner.__file__).parent
    installed = package / "_data" / "reports_templates"
    return installed if installed.is_dir() else package.parent / "reports_templates"


def _make_harmless(value: object) -> object:
    return visible(cut(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _name(text: str) -> str:
    """A name, cut: the API limits names to 253 characters, a file does not."""
    return visible(cut(text, NAME)) if text else NO_NAME


def _prose(text: str, longest: int = LONGEST) -> Markup:
    """A text of several lines."""
    return escape(visible(cut(text, longest), lines=True))


def _words(value: StrEnum) -> str:
    """A value of the model in words: `namespace labels` for `namespaceLabels`."""
    return "".join(f" {mark.lower()}" if mark.isupper() else mark for mark in value)


def _mark_commands(text: str) -> Markup:
    """A text in which commands stand between back quotes, with an element for each."""
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(visible(cut(text))))))  # noqa: S704 - the text is escaped


def _join_unit(text: str) -> Markup:
    """A text in which no line ends between a number and its unit."""
    return escape(visible(cut(text))).replace(" %", "\N{NO-BREAK SPACE}%")


def _word(templates: Environment, result: str) -> Markup:
    macros = cast("Any", templates.get_template("rows.html").module)
    return escape(macros.result_word(result))

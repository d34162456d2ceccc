"""The HTML templates, and what they may do with a text.

Everything a template prints is escaped, and before that made visible and cut: a template cannot forget it.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import scanner
from scanner.report.sentences import opinion_line
from scanner.report.words import (
    AUDITABILITY,
    AUDITABILITY_MEANINGS,
    GAP_TITLES,
    HEALTH_MEANINGS,
    HEALTH_TITLES,
    LONGEST,
    auditability,
    check_title,
    cut,
    iso,
    percent_ceil,
    percent_floor,
    plural,
    stamp,
    visible,
)

NAME = 300
_BRIEF = 2_000
_LONG = 40_000


@cache
def environment() -> Environment:
    """Make the environment in which every page is rendered. It knows nothing of any document, so once is enough."""
    made = Environment(
        loader=FileSystemLoader(_folder()),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        n="{:,}".format,
        name=_name,
        prose=_prose,
        brief_prose=lambda text: _prose(text, _BRIEF),
        long_prose=lambda text: _prose(text, _LONG),
        stamp=stamp,
        iso=iso,
        plural=plural,
        percent_floor=percent_floor,
        percent_ceil=percent_ceil,
    )
    made.globals.update(
        result_words={word: _word(made, word) for word in ("Violated", "Error", "Drift")},
        check_title=check_title,
        opinion_line=opinion_line,
        health_titles=HEALTH_TITLES,
        health_meanings=HEALTH_MEANINGS,
        gap_titles=GAP_TITLES,
        auditability=auditability,
        auditability_meanings={AUDITABILITY[it]: meaning for it, meaning in AUDITABILITY_MEANINGS.items()},
    )
    return made


def style_hash(style: str) -> str:
    """Name a style sheet in a Content-Security-Policy, so that no other style is applied."""
    return f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}"


def _folder() -> Path:
    """Find the templates: inside the installed package, or beside it in a checkout."""
    package = Path(scanner.__file__).parent
    installed = package / "_data" / "reports_templates"
    return installed if installed.is_dir() else package.parent / "reports_templates"


def _harmless(value: object) -> object:
    return visible(cut(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _name(text: str) -> str:
    """Show a name, which the API limits to 253 characters but a file does not."""
    return visible(cut(text, NAME)) if text else "(no name)"


def _prose(text: str, longest: int = LONGEST) -> Markup:
    """Show a text of several lines."""
    return escape(visible(cut(text, longest), lines=True))


def _word(made: Environment, result: str) -> Markup:
    macros = cast("Any", made.get_template("rows.html").module)
    return escape(macros.result_word(result))

"""A short answer that is no page of a report: a refusal, an error, or a word after signing out.

Browsers get a page, programs that want JSON the form of the errors of the API, and others plain text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

import orjson
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from scanner.report.html.templates import content_hash, environment
from scanner.web.requests.prefix import path_below, prefix_of

_STATUS: Final = 400
"""The first status of errors."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """A form of one field that is sent by POST to `action`; without a `label` it has only its button."""

    action: str
    button: str
    label: str = ""
    name: str = ""
    hidden: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShortAnswer:
    """A short answer: its status, its heading, and sentences. `link` is an address and its words; addresses are without the prefix."""

    status: int
    title: str
    texts: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    link: tuple[str, str] | None = None
    form: AnswerForm | None = None


async def respond(scope: Scope, receive: Receive, send: Send, notice: ShortAnswer) -> None:
    """Send a notice."""
    await response(scope, notice)(scope, receive, send)


def response(scope: Scope, notice: ShortAnswer) -> Response:
    """A notice in the form that the client expects."""
    accept = Headers(scope=scope).get("accept", "")
    number = str(scope.get("state", {}).get("request_id", ""))
    headers = {"Cache-Control": "no-store", **notice.headers}
    if "text/html" in accept:
        return _page(_below(notice, prefix_of(scope)), number, headers)
    lines = [f"{notice.title}.", *notice.texts, *([f"Id: {number}"] if number and notice.status >= _STATUS else [])]
    if path_below(scope).startswith("/api/") or "json" in accept:
        error = {"status": notice.status, "message": " ".join(lines)}
        return Response(orjson.dumps({"error": error}), notice.status, headers, "application/json")
    return Response("".join(f"{line}\n" for line in lines), notice.status, headers, "text/plain")


def _below(notice: ShortAnswer, prefix: str) -> ShortAnswer:
    """The answer with its addresses below a prefix."""
    link = notice.link and (prefix + notice.link[0], notice.link[1])
    form = notice.form and replace(notice.form, action=prefix + notice.form.action)
    return replace(notice, link=link, form=form)


def _page(notice: ShortAnswer, number: str, headers: Mapping[str, str]) -> Response:
    style = _style()
    target = "'self'" if notice.form else "'none'"
    policy = (
        f"default-src 'none'; style-src '{content_hash(style)}'; img-src data:; base-uri 'none'; "
        f"form-action {target}; frame-ancestors 'none'"
    )
    page = (
        environment()
        .get_template("notice.html")
        .render(notice=notice, style=style, number=number if notice.status >= _STATUS else "")
    )
    return Response(page, notice.status, {"Content-Security-Policy": policy, **headers}, "text/html")


@cache
def _style() -> str:
    templates = environment()
    style = templates.get_template("style.css").render(scan="", digest="", web=None, only="notice")
    return f"{style}\n{templates.get_template('notice.css').render()}"

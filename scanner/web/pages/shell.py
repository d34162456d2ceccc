"""The frame of every page of the application: the search, and the moment that the page is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, timedelta
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.requests import Request

from scanner.report.html.templates import content_hash, environment
from scanner.store.catalog.clusters import StoredCluster
from scanner.web.requests.addresses import ScanMoment, cluster_key
from scanner.web.requests.parameters import has_accounts, root_of
from scanner.web.views.library import ScanLibrary

_FIRST: Final = "index.html"


class Period(NamedTuple):
    """A period that ends with a day: its words, and the day at whose end it begins."""

    title: str
    beginning: Callable[[date], date]


PERIODS: Final[Mapping[str, Period]] = {
    "week": Period("Last week", lambda day: day - timedelta(days=7)),
    "month": Period("Last month", lambda day: day - timedelta(days=30)),
    "quarter": Period("First of the quarter", lambda day: day.replace(month=3 * ((day.month - 1) // 3) + 1, day=1)),
    "year": Period("First of the year", lambda day: day.replace(month=1, day=1)),
}
"""What a user reads or compares without typing a date."""


@dataclass(frozen=True, slots=True)
class Shell:
    """The names that templates find in `web`. `root` is the path of the application, without a slash at its end.

    On pages of a cluster, `cluster` is the path of it, `page` that of the page in its report, `date` the day that the page is about.
    """

    root: str = ""
    place: str = ""
    query: str = ""
    today: str = ""
    cluster: str = ""
    page: str = _FIRST
    date: str = ""
    is_latest: bool = False
    moment: str = ""
    """The path of the report, such as `/clusters/prod.3fa29c1b/latest`."""
    formats: tuple[tuple[str, str], ...] = ()
    """The formats of the report for downloads: their names and file names."""
    earlier: tuple[tuple[str, str], ...] = ()
    """The periods before the day of the page: their words, and the days on which they begin."""
    accounts: bool = False
    """Return whether readers sign in. Pages are kept for all readers, so none has the name of one."""


@dataclass(frozen=True, slots=True)
class StyleSheet:
    """The style sheet of pages, and its source expression for the Content-Security-Policy."""

    text: str
    hash: str = field(default="")

    @classmethod
    @lru_cache(maxsize=128)
    def of(cls, scan: str = "", digest: str = "") -> StyleSheet:
        """The style sheet, whose printed pages name a scan and a policy set."""
        text = environment().get_template("style.css").render(scan=scan, digest=digest, web=True)
        return cls(text, content_hash(text))


_PLAIN: Final[list[StyleSheet]] = []


def render(template: str, title: str, shell: Shell, **context: object) -> str:
    """A page that is about no single scan."""
    if not _PLAIN:
        _PLAIN.append(StyleSheet.of())
    style = _PLAIN[0]
    return (
        environment()
        .get_template(template)
        .render(title=title, web=shell, style=style.text, style_hash=style.hash, **context)
    )


def query_link(path: str, parameters: Mapping[str, str]) -> Markup:
    """A link with those parameters that have a value."""
    with_values = {key: value for key, value in parameters.items() if value}
    return Markup("{}?{}").format(path, urlencode(with_values)) if with_values else Markup("{}").format(path)


def path_of(*parts: str) -> str:
    """A path of parts, each of which may have any characters."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


# The shells of pages that are about no single scan: about all clusters, or about one cluster.

LATEST: Final = ScanMoment()


def cluster_path(request: Request, cluster: StoredCluster) -> str:
    """The path of a cluster, with that of the application."""
    return f"{root_of(request)}/clusters{path_of(cluster_key(cluster))}"


def fleet_shell(library: ScanLibrary, request: Request, place: str, query: str = "") -> Shell:
    """The shell of a page about all clusters; `query` is the text of the search."""
    return Shell(root=root_of(request), place=place, query=query, today=today(library), accounts=has_accounts(request))


def cluster_shell(library: ScanLibrary, request: Request, cluster: StoredCluster) -> Shell:
    """The shell of a page about one cluster."""
    path, day = cluster_path(request, cluster), today(library)
    moment = f"{path}/{LATEST.path}"
    return Shell(
        root=root_of(request),
        today=day,
        cluster=path,
        date=day,
        is_latest=True,
        moment=moment,
        accounts=has_accounts(request),
    )


def today(library: ScanLibrary) -> str:
    """The day of UTC."""
    return f"{library.clock().astimezone(UTC):%Y-%m-%d}"

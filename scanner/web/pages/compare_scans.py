"""The page that compares two scans of a cluster, or two dates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, timedelta
from typing import Final, NamedTuple, TypeAlias, assert_never

from starlette.requests import Request
from starlette.responses import Response

from scanner.errors import UsageError
from scanner.model.policy import PolicyKey
from scanner.model.scans.cause import CauseKind
from scanner.model.scans.scan import Scan, ScanState
from scanner.posture.history.scan_diff import ScanDiff
from scanner.posture.score import SeverityOf
from scanner.posture.settings import Settings
from scanner.posture.severity import Severity, describe, describe_by_annotations
from scanner.posture.waivers.waiving import WaiverChanges, waiver_changes
from scanner.report.diff.shown import RULES, list_causes, list_rules
from scanner.report.diff.words import (
    DIFF_CAUSES,
    also_words,
    change_words,
    choice_title,
    circumstances,
    count_findings,
    count_problems,
    counts_line,
    gap_words,
    incomparable_sentence,
    incomparable_values,
    message_lines,
    rules_sentence,
    state_words,
    waiver_rows,
    warnings,
    workload_words,
)
from scanner.store import SqlReader
from scanner.store.catalog.clusters import StoredCluster
from scanner.web.pages.answers import RenderedPages, page_answer
from scanner.web.pages.shell import PERIODS, cluster_path, cluster_shell, query_link, render, today
from scanner.web.requests.addresses import ScanMoment, moment_of
from scanner.web.requests.parameters import query_of, text_of
from scanner.web.requests.refusals import BadRequest, ScanIsLater
from scanner.web.views.kept import KeptValues, keep_recent
from scanner.web.views.library import ScanLibrary
from scanner.web.views.scan_counts import triage_of

# The difference of two scans of one cluster, with what a page shows of it.

PROBLEMS: Final = 50
"""The problems of each cause that a page shows, and the waivers."""
MOST_PROBLEMS: Final = 1_000
"""The problems of one cause that a page of that cause shows."""


@dataclass(frozen=True)
class ScanComparison:
    """A difference with the severities of policies as the later scan used them, and the waivers of both days."""

    diff: ScanDiff
    severity: SeverityOf
    waivers: WaiverChanges


def compare_scans(reader: SqlReader, settings: Settings, before: str, now: str) -> ScanComparison:
    """Compare two scans of a cluster by their full ids, the earlier one first. Raises BadRequest for scans that have no difference."""
    try:
        diff = reader.compare_scans(before, now)
        records = reader.read_scan(before), reader.read_scan(now)
    except UsageError as error:
        raise BadRequest(str(error)) from error
    waived = [triage_of(reader, settings, record).waived for record in records]
    used = (each.policy for record in records for each in record.policies)
    described = {policy.key: describe(policy, settings.descriptions) for policy in used}

    def severity(policy: PolicyKey, expression: str) -> Severity:
        description = described.get(policy) or describe_by_annotations(policy, {}, settings.descriptions)
        return description.severity_of(expression)

    return ScanComparison(diff, severity, waiver_changes(*records, *waived))


_TEMPLATE: Final = "web/compare.html"
_WORDS: Final = {
    "also_words": also_words,
    "change_words": change_words,
    "counts_line": counts_line,
    "finding_counts": count_findings,
    "message_lines": message_lines,
    "problem_counts": count_problems,
    "state_words": state_words,
    "workload_words": workload_words,
    "causes": DIFF_CAUSES,
    "gap_words": gap_words,
}


_LISTED: Final = 100
"""The scans that the form lists."""


class _Choice(NamedTuple):
    """A scan in a list of the form."""

    id: str
    title: str


class _Pair(NamedTuple):
    """The ids of two scans, the earlier one first."""

    before: str
    after: str


class _NoPair(NamedTuple):
    """The reason why there are no two scans to compare."""

    why: str


_Chosen: TypeAlias = _Pair | _NoPair


@dataclass(frozen=True)
class ComparePages:
    """Answers requests for the difference of two scans of a cluster. The `pairs` of scans are remembered for some seconds."""

    library: ScanLibrary
    rendered: RenderedPages
    pairs: KeptValues[_Chosen] = field(default_factory=keep_recent)

    def compare(self, request: Request) -> Response:
        """The page: by default of the two newest comparable scans."""
        cluster = self.library.cluster(request.path_params["cluster"])
        before, after = text_of(request, "before"), text_of(request, "after")
        if since := text_of(request, "since"):
            before = self._find_beginning(cluster, after, since)
        kind = _kind(text_of(request, "cause"))
        chosen = self.pairs.value((cluster.id, before, after), lambda: self._choose(cluster, before, after))
        newest = self.library.scan(cluster, ScanMoment()).id
        key = "compare", cluster, chosen, kind, newest, query_of(request), today(self.library)
        return page_answer(request, self.rendered.page(key, lambda: self._answer(request, cluster, chosen, kind)))

    def _find_beginning(self, cluster: StoredCluster, after: str, since: str) -> str:
        """The date at which a period before a scan begins. Raises BadRequest for an unknown period, and NotThere."""
        if since not in PERIODS:
            raise BadRequest(f"since: one of {', '.join(PERIODS)}.")
        scan = self._find_scan(cluster, after)
        day = (scan.finished_at or scan.started_at).astimezone(UTC).date()
        return PERIODS[since].beginning(day).isoformat()

    def _answer(self, request: Request, cluster: StoredCluster, chosen: _Chosen, kind: CauseKind | None) -> str:
        match chosen:
            case _Pair():
                return self._page(request, cluster, chosen, kind)
            case _NoPair(why):
                return self._render_without(request, cluster, why)
            case _ as never:
                assert_never(never)

    def _choose(self, cluster: StoredCluster, before: str, after: str) -> _Chosen:
        """The scans that a request names. Raises BadRequest and NotThere."""
        if not before and not after:
            return self._find_pair(lambda reader: reader.find_newest_scans_to_compare(cluster))
        later = self._find_scan(cluster, after)
        if not before:
            return self._find_pair(lambda reader: (reader.find_earlier_scan_to_compare(later.id), later.id))
        earlier = self._find_scan(cluster, before)
        if earlier.id == later.id:
            return _NoPair(f"Both moments name the same scan, {later.id}: name an earlier date or another scan.")
        with self.library.use_reader() as reader:
            return _Pair(*reader.order_scans(earlier.id, later.id))

    def _find_scan(self, cluster: StoredCluster, moment: str) -> Scan:
        """The scan of a moment; before the first scan of the cluster, that one."""
        try:
            return self.library.scan(cluster, moment_of(moment))
        except ScanIsLater as later:
            return self.library.scan(cluster, ScanMoment(later.scan))

    def _find_pair(self, find: Callable[[SqlReader], tuple[str, str]]) -> _Chosen:
        with self.library.use_reader() as reader:
            try:
                return _Pair(*find(reader))
            except UsageError as error:
                return _NoPair(str(error))

    def _page(self, request: Request, cluster: StoredCluster, pair: _Pair, kind: CauseKind | None) -> str:
        with self.library.use_reader() as reader:
            comparison = compare_scans(reader, self.library.settings, *pair)
            return self._render(request, cluster, comparison, kind)

    def _render(
        self, request: Request, cluster: StoredCluster, comparison: ScanComparison, kind: CauseKind | None
    ) -> str:
        diff = comparison.diff
        path = cluster_path(request, cluster)
        shown = diff.causes if kind is None else (kind,)
        most = PROBLEMS if kind is None else MOST_PROBLEMS
        causes = tuple(list_causes(diff, most, shown))
        rules = list_rules(diff, besides=causes) if kind is None else []
        both = {"before": diff.before.id, "after": diff.now.id}
        return render(
            _TEMPLATE,
            f"Comparison of {cluster.name}",
            cluster_shell(self.library, request, cluster),
            cluster=cluster,
            **self._form(request, cluster, diff.before, diff.now),
            why_not="",
            diff=diff,
            only=kind,
            sections=causes,
            severity=comparison.severity,
            waivers=list(waiver_rows(comparison.waivers)) if kind is None else [],
            waivers_shown=MOST_PROBLEMS,
            incomparable=incomparable_sentence(diff),
            warnings=list(warnings(diff)),
            gaps_shown=RULES,
            incomparable_values=list(incomparable_values(diff)),
            rules_sentence=rules_sentence(diff) or "The rules are equal in both scans.",
            circumstances=list(circumstances(diff)),
            rules=rules,
            rules_unshown=max(0, len(diff.rules) - RULES) if kind is None else 0,
            report_of=lambda scan: f"{path}/{ScanMoment(scan=scan.id).path}",
            cause_link=lambda cause: query_link(f"{path}/compare", {**both, "cause": cause.value}),
            whole=query_link(f"{path}/compare", both),
            **_WORDS,
        )

    def _render_without(self, request: Request, cluster: StoredCluster, why: str) -> str:
        """The page without a difference: the form, and the reason."""
        shell = cluster_shell(self.library, request, cluster)
        title = f"Comparison of {cluster.name}"
        form = self._form(request, cluster)
        return render(_TEMPLATE, title, shell, cluster=cluster, **form, why_not=why, diff=None, only=None)

    def _form(self, request: Request, cluster: StoredCluster, *chosen: Scan) -> dict[str, object]:
        """What the form offers: scans, dates, and periods that end with the newest scan or with the months before."""
        with self.library.use_reader() as reader:
            page = reader.read_scan_page(cluster.id, limit=_LISTED)
        usable = (each.scan for each in page.scans if each.scan.finished_at and not each.pruned)
        listed = {scan.id: scan for scan in (*usable, *chosen) if scan.state is not ScanState.FAILED}
        newest_first = sorted(listed.values(), key=lambda scan: scan.finished_at or scan.started_at, reverse=True)
        path = f"{cluster_path(request, cluster)}/compare"
        months = _find_months(self.library.clock().astimezone(UTC).date())
        return {
            "wanted": _Wanted(*(scan.id for scan in chosen)) if chosen else _Wanted("", ""),
            "days": [f"{scan.finished_at or scan.started_at:%Y-%m-%d}" for scan in chosen] or ["", ""],
            "choices": [_Choice(scan.id, choice_title(scan)) for scan in newest_first],
            "periods": [
                ("The scan before", path),
                *((period.title, query_link(path, {"since": name})) for name, period in PERIODS.items()),
                (f"{months[1]:%B} against {months[0]:%B}", query_link(path, _as_query(months))),
            ],
        }


def _find_months(day: date) -> tuple[date, date]:
    """The last days of the two months before that of a day, the earlier one first."""
    last = day.replace(day=1) - timedelta(days=1)
    return last.replace(day=1) - timedelta(days=1), last


def _as_query(months: tuple[date, date]) -> dict[str, str]:
    return {"before": months[0].isoformat(), "after": months[1].isoformat()}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The values of the form."""

    before: str
    after: str


def _kind(text: str) -> CauseKind | None:
    try:
        return CauseKind(text) if text else None
    except ValueError:
        raise BadRequest(f"cause: one of {', '.join(CauseKind)}.") from None

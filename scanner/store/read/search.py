"""Searches all clusters of a database: policies, workloads, objects, owners, messages, and the beginnings of ids.

Every word must match a text of a hit. Hits come in the order exact, then others; of objects, workloads and messages, the newest 500
candidates are compared. A word that names a kind, such as `deployment web`, may match the kind of an object or a workload instead,
but not every word may: a list of all objects of a kind answers nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, RowMapping, Table, func, select, text

from scanner.model.policy import PolicyKey
from scanner.posture.owners import OwnerKey
from scanner.posture.problem_ids import CheckKey, problem_id
from scanner.store.catalog.check_names import digest_key
from scanner.store.catalog.clusters import StoredCluster, read_clusters
from scanner.store.database.engine import is_among, select_numbers
from scanner.store.read.findings import SHORT, FindingRow, select_findings
from scanner.store.read.kept_labels import decode_pairs
from scanner.store.read.search_hits import (
    CheckHit,
    FindingHit,
    Hits,
    MessageHit,
    ObjectHit,
    OwnerHit,
    PolicyHit,
    ProblemHit,
    ScanHit,
    SearchHits,
    WorkloadHit,
    cut_hits,
)
from scanner.store.read.search_query import WordQuery, build_row_condition, find_kinds, find_newest_rows
from scanner.store.rows.interning import digest
from scanner.store.rows.search_entries import SearchWord, describe_policy, list_entries, list_name_entries, split_words
from scanner.store.rows.shared_rows import select_policy_owner
from scanner.store.rows.stored_texts import fill_template
from scanner.store.rows.tables import (
    CHECK_NAMES,
    CHECKS,
    FINDINGS,
    KEPT,
    KINDS,
    OBJECTS,
    OPEN,
    POLICIES,
    POPULATION,
    SCAN_POLICIES,
    SCANS,
    VERDICT_USES,
    VERDICTS,
    WORKLOADS,
)

CANDIDATES: Final = 500
"""The newest rows that match, of which the best are shown."""
NAME: Final = "NAME"
NAMESPACE: Final = "NAMESPACE"
"""They stand for the name and the namespace of the object in the message of a hit."""


class SearchRequest(NamedTuple):
    """The input of a search: the words, the clusters by id, and the number of hits of each kind."""

    words: Sequence[SearchWord]
    clusters: Clusters
    limit: int

    @property
    def text(self) -> str:
        """The words in small letters."""
        return " ".join(word.text for word in self.words).casefold()

    def rank(self, *names: str) -> int:
        """The place of a hit with some names: 0 for the text itself, 1 if its names end as the words do, else 2."""
        if self.text in {name.casefold() for name in names}:
            return 0
        entries = frozenset(list_name_entries(*names))
        beginnings = (begin for word in self.words for begin in word.beginnings)
        return 1 if entries.issuperset(beginnings) else 2


def search(connection: Connection, query: str, limit: int, owners: Iterable[OwnerKey]) -> SearchHits:
    """The hits of a text, at most `limit` of each kind. `owners` are the labels and annotations that name owners."""
    words = split_words(query)
    clusters = {cluster.id: cluster for cluster in read_clusters(connection)}
    request = SearchRequest(words, clusters, limit)
    hits = SearchHits()
    if words and all(word.beginnings for word in words):
        named = find_kinds(connection, words)
        only_kinds = all(begin in named for word in words for begin in word.beginnings)
        kinds = {} if only_kinds else named
        hits = SearchHits(
            policies=_search_policies(connection, request),
            workloads=_search_workloads(connection, request),
            objects=_search_objects(connection, request, kinds),
            owners=_search_owners(connection, request, frozenset((key.source, key.key) for key in owners)),
            messages=_search_messages(connection, request),
        )
    if len(words) != 1:
        return hits
    begin, small = words[0].text, words[0].text.lower()
    return hits._replace(
        findings=find_findings(connection, clusters, small, limit),
        problems=find_problems(connection, clusters, small, limit),
        checks=find_checks(connection, clusters, small, limit),
        scans=find_scans(connection, clusters, begin, limit),
    )


def _search_policies(connection: Connection, request: SearchRequest) -> Hits[PolicyHit]:
    """The policies with each word in their name, title or category, or in a check: its binding, its param or its expression."""
    named, chosen = set[PolicyKey](), set[PolicyKey]()
    for place, word in enumerate(request.words):
        by_name = _find_policy_keys(connection, POLICIES, "name", word)
        matching = by_name | _find_policy_keys(connection, CHECKS, "policy", word)
        named, chosen = (named & by_name, chosen & matching) if place else (by_name, matching)
    titles = _read_titles(connection, chosen)
    clusters = _find_clusters_of_policies(connection, request.clusters, chosen)

    def order(key: PolicyKey) -> tuple[Any, ...]:
        return not clusters[key], request.rank(titles[key], key[1]), key not in named, key[1], key[0]

    hits = [PolicyHit(*key, titles[key], tuple(clusters[key])) for key in sorted(chosen, key=order)]
    return cut_hits(hits, request.limit)


def _find_policy_keys(connection: Connection, table: Table, column: str, word: SearchWord) -> set[PolicyKey]:
    condition = build_row_condition(connection, table, WordQuery((word,)))
    query = text(f"SELECT DISTINCT language, {column} FROM {table.name} WHERE {condition.sql}")  # noqa: S608 - constants
    return {(language, name) for language, name in connection.execute(query, condition.values)}


def _read_titles(connection: Connection, keys: Iterable[PolicyKey]) -> dict[PolicyKey, str]:
    """The titles of policies, as their newest version has them."""
    policy = POLICIES.c
    titles = {key: key[1] for key in keys}
    if not titles:
        return {}
    newest = select(func.max(policy.id)).group_by(policy.language, policy.name).scalar_subquery()
    wanted = select(policy.language, policy.name, policy.document).where(policy.id.in_(newest))
    for language, name, document in connection.execute(wanted):
        if (language, name) in titles:
            titles[language, name] = describe_policy(language, name, document).title
    return titles


def _find_clusters_of_policies(
    connection: Connection, clusters: Clusters, keys: Iterable[PolicyKey]
) -> dict[PolicyKey, list[StoredCluster]]:
    """The clusters whose newest merged scans have policies."""
    by_policy: dict[PolicyKey, list[StoredCluster]] = {key: [] for key in keys}
    if not by_policy:
        return {}
    newest = select(SCANS.c.cluster, func.max(SCANS.c.revision).label("revision")).group_by(SCANS.c.cluster).subquery()
    of_newest = (SCANS.c.cluster == newest.c.cluster) & (SCANS.c.revision == newest.c.revision)
    policy = POLICIES.c
    wanted = (
        select(SCANS.c.cluster, policy.language, policy.name)
        .distinct()
        .select_from(SCANS.join(newest, of_newest).join(SCAN_POLICIES, SCAN_POLICIES.c.scan == select_policy_owner()))
        .join(POLICIES, policy.id == SCAN_POLICIES.c.policy)
        .where(is_among(connection, policy.name, sorted({name for _, name in by_policy})))
    )
    for cluster, language, name in connection.execute(wanted):
        if (language, name) in by_policy:
            by_policy[language, name].append(clusters[cluster])
    return {key: _sort_clusters(each) for key, each in by_policy.items()}


def _sort_clusters(clusters: Iterable[StoredCluster]) -> list[StoredCluster]:
    return sorted(clusters, key=lambda cluster: (cluster.name, cluster.id))


class _Candidates(NamedTuple):
    """The ids of rows, the best first, and whether there are others."""

    rows: list[int]
    more: bool


def _find_candidates(
    connection: Connection,
    table: Table,
    request: SearchRequest,
    kinds: Mapping[str, Sequence[int]],
    *,
    workloads: bool = False,
) -> _Candidates:
    """The newest rows that match: exact ones in any case, and others."""
    newest = find_newest_rows(
        connection, table, WordQuery(request.words, kinds=kinds, workload_kinds=workloads), CANDIDATES
    )
    if len(newest) < CANDIDATES:
        return _Candidates(newest, more=False)
    exact = find_newest_rows(
        connection, table, WordQuery(request.words, exact=True, kinds=kinds, workload_kinds=workloads), CANDIDATES
    )
    return _Candidates(list(dict.fromkeys([*exact, *newest])), more=True)


def _read_rows(connection: Connection, table: Table, rows: Sequence[int]) -> list[RowMapping]:
    """Rows in the order of their ids in `rows`."""
    wanted = select(table).where(table.c.id.in_(select_numbers(connection, rows)))
    by_id = {row["id"]: row for row in connection.execute(wanted).mappings()}
    return [by_id[number] for number in rows if number in by_id]


_WorkloadKey: TypeAlias = tuple[str, str, str, str]


def _search_workloads(connection: Connection, request: SearchRequest) -> Hits[WorkloadHit]:
    several = sum(len(word.beginnings) for word in request.words) > 1
    candidates = _find_candidates(connection, WORKLOADS, request, {}, workloads=several)
    keys = dict.fromkeys(
        (row["api_version"], row["kind"], row["namespace"], row["name"])
        for row in _read_rows(connection, WORKLOADS, candidates.rows)
    )
    best = sorted(keys, key=lambda key: (request.rank(key[3], key[2], key[1]), key[3], key[2], key[1]))
    best = best[: request.limit + 1]
    clusters = _find_clusters_of_workloads(connection, request.clusters, best)
    return cut_hits(
        [WorkloadHit(*key, tuple(clusters.get(key, ()))) for key in best], request.limit, more=candidates.more
    )


def _find_clusters_of_workloads(
    connection: Connection, clusters: Clusters, keys: Sequence[_WorkloadKey]
) -> dict[_WorkloadKey, list[StoredCluster]]:
    """The clusters of workloads, which may be derived in some of them."""
    if not keys:
        return {}
    digests = {digest((*key, derived)): key for key in keys for derived in (False, True)}
    top = WORKLOADS.c
    of_row = {
        row.id: digests[bytes(row.digest)]
        for row in connection.execute(select(top.id, top.digest).where(top.digest.in_(digests)))
    }
    by_workload: defaultdict[_WorkloadKey, set[StoredCluster]] = defaultdict(set)
    for row, cluster in _read_uses(connection, POPULATION.c.workload, of_row):
        by_workload[of_row[row]].add(clusters[cluster])
    return {key: _sort_clusters(each) for key, each in by_workload.items()}


def _read_uses(connection: Connection, column: Any, rows: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The ids of rows and of the clusters that refer to them in `population`."""
    wanted = (
        select(column, POPULATION.c.cluster).where(column.in_(select_numbers(connection, rows)), column != 0).distinct()
    )
    return ((row, cluster) for row, cluster in connection.execute(wanted))


def _search_objects(
    connection: Connection, request: SearchRequest, kinds: Mapping[str, Sequence[int]]
) -> Hits[ObjectHit]:
    candidates = _find_candidates(connection, OBJECTS, request, kinds)
    kinds_by_id = {number: (api_version, kind) for number, api_version, kind in connection.execute(_KINDS)}

    def order(row: RowMapping) -> tuple[Any, ...]:
        names = row["name"], row["namespace"], kinds_by_id[row["kind"]][1]
        return request.rank(*names), *names, row["cluster"]

    rows = sorted(_read_rows(connection, OBJECTS, candidates.rows), key=order)[: request.limit + 1]
    still = POPULATION.c.object.in_(select_numbers(connection, [row["id"] for row in rows])), POPULATION.c.until == OPEN
    present = frozenset(connection.execute(select(POPULATION.c.object).where(*still)).scalars())
    hits = [
        ObjectHit(
            request.clusters[row["cluster"]],
            *kinds_by_id[row["kind"]],
            row["namespace"],
            row["name"],
            row["uid"],
            row["id"] in present,
        )
        for row in rows
    ]
    return cut_hits(hits, request.limit, more=candidates.more)


_KINDS: Final = select(KINDS.c.id, KINDS.c.api_version, KINDS.c.kind)


def _search_owners(connection: Connection, request: SearchRequest, keys: frozenset[tuple[str, str]]) -> Hits[OwnerHit]:
    """The owners whose names match every word."""
    condition = build_row_condition(connection, KEPT, WordQuery(request.words))
    rows: defaultdict[str, list[int]] = defaultdict(list)
    matching: dict[str, bool] = {}
    wanted = text(f"SELECT id, labels, annotations FROM kept WHERE {condition.sql}")  # noqa: S608 - constants
    for number, labels, other in connection.execute(wanted, condition.values):
        for owner in _list_owners(labels, other, keys):
            if owner not in matching:
                matching[owner] = all(word.matches(list_entries(owner)) for word in request.words)
            if matching[owner]:
                rows[owner].append(number)
    best = sorted(rows, key=lambda owner: (request.rank(owner), owner))[: request.limit + 1]
    return cut_hits(list(_build_owner_hits(connection, request, best, rows)), request.limit)


def _build_owner_hits(
    connection: Connection, request: SearchRequest, owners: Sequence[str], rows: Mapping[str, Sequence[int]]
) -> Iterator[OwnerHit]:
    numbers = {number for owner in owners for number in rows[owner]}
    of_row: defaultdict[int, set[int]] = defaultdict(set)
    for number, cluster in _read_uses(connection, POPULATION.c.kept, numbers):
        of_row[number].add(cluster)
    for owner in owners:
        clusters = {cluster for number in rows[owner] for cluster in of_row[number]}
        yield OwnerHit(owner, tuple(_sort_clusters(request.clusters[cluster] for cluster in clusters)))


def _list_owners(labels: str, annotations: str, keys: frozenset[tuple[str, str]]) -> Iterator[str]:
    for source, pairs in (("label", labels), ("annotation", annotations)):
        for key, value in decode_pairs(pairs):
            if (source, key) in keys and value.strip():
                yield value.strip()


def _search_messages(connection: Connection, request: SearchRequest) -> Hits[MessageHit]:
    candidates = _find_candidates(connection, VERDICTS, request, {})
    texts = {
        row["id"]: fill_template(row["message"], NAME, NAMESPACE)
        for row in _read_rows(connection, VERDICTS, candidates.rows)
        if row["outcome"] != "wouldChange"
    }
    use, check = VERDICT_USES.c, CHECKS.c
    wanted = (
        select(use.verdict, use.cluster, check.language, check.policy).distinct().join(CHECKS, check.id == use.check)
    )
    clusters: defaultdict[tuple[str, str, str], set[StoredCluster]] = defaultdict(set)
    for row in connection.execute(wanted.where(use.verdict.in_(select_numbers(connection, texts)))):
        clusters[texts[row.verdict], row.language, row.policy].add(request.clusters[row.cluster])
    best = sorted(clusters, key=lambda key: (request.rank(key[0]), key[0], key[2], key[1]))
    hits = [MessageHit(*key, tuple(_sort_clusters(clusters[key]))) for key in best]
    return cut_hits(hits, request.limit, more=candidates.more)


# Finds findings, problems, checks and scans by the beginning of an id.
#
# Fingerprints and ids of scans are read from their indexes. The number of a problem has none, which would need twenty
# bytes for each finding: the rows of findings are read.

FEWEST: Final = 4
"""The number of characters, or of digits after `p-` and `c-`, below which no id is looked up."""
_DIGITS: Final = 12
_FINGERPRINT: Final = re.compile(rf"[0-9a-f]{{{FEWEST},64}}")
_NUMBER: Final = re.compile(rf"[0-9a-f]{{{FEWEST},{_DIGITS}}}")
_AFTER: Final = "\x7f"
"""Follows every character of an id."""
_ORDINALS: Final = 4
"""The number of equal expressions of a policy whose checks are told apart."""

Clusters: TypeAlias = Mapping[int, StoredCluster]


class _Policy(NamedTuple):
    language: str = ""
    name: str = ""


def find_findings(connection: Connection, clusters: Clusters, begin: str, limit: int) -> Hits[FindingHit]:
    """The findings whose fingerprints begin so."""
    if not _FINGERPRINT.fullmatch(begin):
        return Hits()
    low, high = bytes.fromhex(begin.ljust(64, "0")), bytes.fromhex(begin.ljust(64, "f"))
    finding = FINDINGS.c
    wanted = select_findings().where(finding.fingerprint.between(low, high), finding.superseded.is_(None))
    ordered = wanted.order_by(finding.fingerprint, finding.cluster).limit(limit + 1)
    rows = map(FindingRow.from_row, connection.execute(ordered))
    return cut_hits([_build_finding_hit(row, clusters) for row in rows], limit)


def _build_finding_hit(row: FindingRow, clusters: Clusters) -> FindingHit:
    return FindingHit(
        bytes(row.history.fingerprint).hex()[:SHORT],
        clusters[row.history.cluster],
        row.check.language,
        row.check.policy,
        row.kind.api_version,
        row.kind.kind,
        row.identity.namespace,
        row.identity.name,
        row.history.until == OPEN,
    )


def find_problems(connection: Connection, clusters: Clusters, begin: str, limit: int) -> Hits[ProblemHit]:
    """The problems whose ids begin so."""
    digits = _parse_digits("p-", begin)
    if not digits:
        return Hits()
    finding = FINDINGS.c
    low, high = int(digits.ljust(_DIGITS, "0"), 16), int(digits.ljust(_DIGITS, "f"), 16)
    columns = (
        finding.problem,
        finding.cluster,
        func.max(finding.until).label("until"),
        func.min(finding.check).label("check"),
    )
    wanted = select(*columns).where(finding.problem.between(low, high)).group_by(finding.problem, finding.cluster)
    rows = connection.execute(wanted.order_by(finding.problem, finding.cluster).limit(limit + 1)).all()
    policies = _read_policies(connection, {row.check for row in rows})
    return cut_hits(
        [
            ProblemHit(problem_id(row.problem), clusters[row.cluster], *policies[row.check], row.until == OPEN)
            for row in rows
        ],
        limit,
    )


def _read_policies(connection: Connection, checks: set[int]) -> dict[int, _Policy]:
    check = CHECKS.c
    wanted = select(check.id, check.language, check.policy).where(check.id.in_(sorted(checks)))
    return {row.id: _Policy(row.language, row.policy) for row in connection.execute(wanted)}


def find_checks(connection: Connection, clusters: Clusters, begin: str, limit: int) -> Hits[CheckHit]:
    """The checks whose ids begin so, in each cluster."""
    digits = _parse_digits("c-", begin)
    if not digits:
        return Hits()
    check_name = CHECK_NAMES.c
    low, high = f"c-{digits.ljust(_DIGITS, '0')}", f"c-{digits.ljust(_DIGITS, 'f')}"
    wanted = select(check_name.name, check_name.cluster, check_name.digest).where(
        check_name.name >= low, check_name.name <= high
    )
    ordered = connection.execute(wanted.order_by(check_name.name, check_name.cluster, check_name.since)).all()
    digests = {(row.name, row.cluster): bytes(row.digest) for row in ordered}
    policies = _read_policies_by_digest(connection) if digests else {}
    return cut_hits(
        [
            CheckHit(name, clusters[cluster], *policies.get(digest, _Policy()))
            for (name, cluster), digest in digests.items()
        ],
        limit,
    )


def _read_policies_by_digest(connection: Connection) -> dict[bytes, _Policy]:
    """The policies of the checks that findings and tallies have, by the digest in `check_names`."""
    check = CHECKS.c
    wanted = select(check.language, check.policy, check.kind, check.expression).distinct()
    return {
        digest_key(CheckKey(row.language, row.policy, row.kind, row.expression.strip(), ordinal)): _Policy(
            row.language, row.policy
        )
        for row in connection.execute(wanted)
        for ordinal in range(_ORDINALS)
    }


def find_scans(connection: Connection, clusters: Clusters, begin: str, limit: int) -> Hits[ScanHit]:
    """The scans whose ids begin so, the newest first."""
    if len(begin) < FEWEST:
        return Hits()
    scan = SCANS.c
    columns = scan.id, scan.cluster, scan.started_at, scan.state
    wanted = select(*columns).where(scan.id >= begin, scan.id < begin + _AFTER).order_by(scan.number.desc())
    rows = connection.execute(wanted.limit(limit + 1))
    return cut_hits([ScanHit(row.id, clusters[row.cluster], row.started_at, row.state) for row in rows], limit)


def _parse_digits(sign: str, begin: str) -> str:
    """The hex digits of the beginning of an id; empty if it is none."""
    digits = begin.removeprefix(sign)
    return digits if begin.startswith(sign) and _NUMBER.fullmatch(digits) else ""

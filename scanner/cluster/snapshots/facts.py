"""The documents of a snapshot besides its pages, and how the nouns of a scan are written in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

import orjson

from scanner.audit.sensitive_fields import MASK
from scanner.cel import Question
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts
from scanner.model.outcome import Gap, GapKind
from scanner.model.population import GroupKind
from scanner.model.resource import Kind, UserInfo
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import ClusterIdentity, ServerCounts
from scanner.model.withheld import WithheldText
from scanner.mutate.schema import Custom, DefinedVersions, Schema
from scanner.scan.edges import Discovery

CLUSTER: Final = "cluster.json"
SCAN: Final = "scan.json"
SCHEMAS: Final = "schemas.json"
_FIELDS_OF_QUESTION: Final = (
    "verb",
    "path",
    "group",
    "version",
    "resource",
    "subresource",
    "namespace",
    "name",
    "field_selector",
    "label_selector",
)


@dataclass(slots=True)
class RecordedPage:
    """A page in the order of its list: its member, and what a `Page` has besides its data."""

    member: str
    number: int
    resource_version: str
    seconds: float
    inconsistency: str


@dataclass(slots=True)
class RecordedList:
    """A list of a kind. `ended` tells that its last page was read; `state` and `why` are those of `ListFailed`, or empty."""

    kind: Kind
    namespace: str
    selector: str
    metadata_only: bool
    pages: list[RecordedPage] = field(default_factory=list)
    ended: bool = False
    state: str = ""
    why: str = ""

    def to_json(self) -> dict[str, Json]:
        """The list as a JSON object."""
        return {**asdict(self), "kind": write_kind(self.kind)}


def read_list(value: Json) -> RecordedList:
    """The list that `to_json` wrote. Raises ValueError for another document."""
    recorded = RecordedList(
        kind=read_kind(dig(value, "kind")),
        namespace=as_text(dig(value, "namespace")),
        selector=as_text(dig(value, "selector")),
        metadata_only=dig(value, "metadata_only") is True,
        ended=dig(value, "ended") is True,
        state=as_text(dig(value, "state")),
        why=as_text(dig(value, "why")),
    )
    for page in as_list(dig(value, "pages")):
        number, seconds = dig(page, "number"), dig(page, "seconds")
        if not isinstance(number, int) or not isinstance(seconds, int | float):
            raise ValueError("a page has no number")  # noqa: TRY004 - the text is wrong
        texts_of = (as_text(dig(page, key)) for key in ("member", "resource_version", "inconsistency"))
        member, resource_version, inconsistency = texts_of
        recorded.pages.append(RecordedPage(member, number, resource_version, float(seconds), inconsistency))
    return recorded


def write_kind(kind: Kind) -> list[Json]:
    """A kind as a JSON list."""
    return [kind.group, kind.version, kind.kind, kind.plural, kind.namespaced]


def read_kind(value: Json) -> Kind:
    """The kind of a JSON list. Raises ValueError for another value."""
    match value:
        case [str(group), str(version), str(kind), str(plural), bool(namespaced)]:
            return Kind(group, version, kind, plural, namespaced)
        case _:
            raise ValueError("a kind is no list of four names and a boolean")


def write_discovery(discovery: Discovery) -> dict[str, Json]:
    """What a cluster serves, as a JSON object."""
    return {
        "kinds": [write_kind(kind) for kind in discovery.kinds],
        "gaps": [_write_gap(gap, discovery.kinds_of_gaps.get(gap)) for gap in discovery.gaps],
        "outside": [asdict(item) for item in discovery.outside],
        "unlabelled": {name: [write_kind(kind) for kind in kinds] for name, kinds in discovery.unlabelled.items()},
        "namespaces": list(discovery.namespaces),
        "notes": list(discovery.notes),
    }


def read_discovery(value: Json) -> Discovery:
    """The discovery that `write_discovery` wrote. Raises ValueError for another document."""
    gaps = [(_read_gap(item), _read_group_kind(item)) for item in as_list(dig(value, "gaps"))]
    unlabelled = as_object(dig(value, "unlabelled")).items()
    return Discovery(
        kinds=tuple(map(read_kind, as_list(dig(value, "kinds")))),
        gaps=tuple(gap for gap, _ in gaps),
        kinds_of_gaps={gap: kind for gap, kind in gaps if kind},
        outside=tuple(
            OutOfScope(as_text(dig(item, "kind")), as_text(dig(item, "name")), as_text(dig(item, "why")))
            for item in as_list(dig(value, "outside"))
        ),
        unlabelled={name: frozenset(map(read_kind, as_list(kinds))) for name, kinds in unlabelled},
        namespaces=tuple(map(as_object, as_list(dig(value, "namespaces")))),
        notes=texts(dig(value, "notes")),
        withholds=True,
    )


def _write_gap(gap: Gap, kind: GroupKind | None) -> dict[str, Json]:
    return {"kind": gap.kind.value, "where": gap.where, "why": gap.why, "groupKind": list(kind) if kind else None}


def _read_gap(value: Json) -> Gap:
    return Gap(GapKind(as_text(dig(value, "kind"))), as_text(dig(value, "where")), as_text(dig(value, "why")))


def _read_group_kind(value: Json) -> GroupKind | None:
    names = texts(dig(value, "groupKind"))
    return (names[0], names[1]) if len(names) > 1 else None


def write_user(user: UserInfo) -> dict[str, Json]:
    """A user by name and groups. Other facts of an authenticator are withheld, as in reports."""
    return {"username": user.username, "groups": list(user.groups), "withheld": bool(user.uid or user.extra)}


def read_user(value: Json) -> UserInfo:
    """The user that `write_user` wrote."""
    name, groups = as_text(dig(value, "username")), texts(dig(value, "groups"))
    if dig(value, "withheld") is not True:
        return UserInfo(name, "", groups)
    return UserInfo(name, WithheldText(MASK), groups, ((WithheldText(MASK), ()),))


def write_question(question: Question) -> str:
    """An authorizer check as a text. Facts about the user besides name and groups are left out: each scan has one user."""
    subject = question.subject
    fields = [getattr(question, name) for name in _FIELDS_OF_QUESTION]
    return orjson.dumps([subject.username, list(subject.groups), *fields]).decode()


def write_identity(identity: ClusterIdentity) -> dict[str, Json]:
    """The identity of a cluster as a JSON object."""
    return asdict(identity)


def read_identity(value: Json) -> ClusterIdentity:
    """The identity that `write_identity` wrote."""
    return ClusterIdentity(**{name: as_text(item) for name, item in as_object(value).items() if name in _IDENTITY})


_IDENTITY: Final = frozenset(asdict(ClusterIdentity("")))


def write_counts(counts: ServerCounts) -> dict[str, Json]:
    """The server's counts of objects as a JSON object."""
    return {"counts": dict(counts.counts), "whyNot": counts.why_not}


def read_counts(value: Json) -> ServerCounts:
    """The counts that `write_counts` wrote."""
    counts = as_object(dig(value, "counts"))
    numbers = {name: item for name, item in counts.items() if isinstance(item, int)}
    return ServerCounts(numbers, as_text(dig(value, "whyNot")))


# Schemas. Those of one source share their types, which are written once.


class WrittenSchemas:
    """The schemas that a scan asked for, by kind, and the conversions."""

    def __init__(self) -> None:
        self._tables: dict[int, tuple[int, Schema]] = {}
        self._schemas: dict[Kind, Json] = {}
        self._conversions: dict[Kind, str] = {}

    def add(self, kind: Kind, schema: Schema | None) -> None:
        """Keep the schema of a kind, None for a kind without one."""
        self._schemas[kind] = None if schema is None else self._write(schema)

    def add_conversion(self, kind: Kind, conversion: str) -> None:
        """Keep the conversion of a kind."""
        self._conversions[kind] = conversion

    def _write(self, schema: Schema) -> dict[str, Json]:
        table, _ = self._tables.setdefault(id(schema.types), (len(self._tables), schema))
        return {
            "root": schema.root,
            "table": table,
            "builtin": schema.builtin,
            "needsAllKeys": schema.needs_all_keys,
            "custom": None if schema.custom is None else _write_custom(schema.custom),
        }

    def to_bytes(self) -> bytes:
        """All of them as a JSON document."""
        tables = [{"types": list(each.types), "names": list(each.names)} for _, each in self._tables.values()]
        schemas = [[write_kind(kind), schema] for kind, schema in self._schemas.items()]
        conversions = [[write_kind(kind), how] for kind, how in self._conversions.items()]
        return orjson.dumps({"tables": tables, "schemas": schemas, "conversions": conversions})


def _write_custom(custom: Custom) -> dict[str, Json]:
    versions = custom.versions
    return {
        "schema": custom.schema,
        "hasStatus": custom.has_status,
        "versions": None
        if versions is None
        else {
            "names": list(versions.names),
            "stored": versions.stored,
            "schema": versions.schema,
            "relabels": versions.relabels,
        },
    }


def read_schemas(document: Json) -> Mapping[Kind, Schema | None]:
    """The schemas of the document that `WrittenSchemas` wrote. Raises ValueError for another document."""
    tables = [(as_list(dig(table, "types")), texts(dig(table, "names"))) for table in as_list(dig(document, "tables"))]
    return {kind: _read_schema(value, tables) for kind, value in _read_pairs(dig(document, "schemas"))}


def read_conversions(document: Json) -> Mapping[Kind, str]:
    """The conversions of the document that `WrittenSchemas` wrote. Raises ValueError for another document."""
    return {kind: as_text(how) for kind, how in _read_pairs(dig(document, "conversions"))}


def _read_pairs(value: Json) -> Iterator[tuple[Kind, Json]]:
    for pair in as_list(value):
        kind, item = as_list(pair)
        yield read_kind(kind), item


def _read_schema(value: Json, tables: Sequence[tuple[Sequence[Json], tuple[str, ...]]]) -> Schema | None:
    number = dig(value, "table")
    if value is None:
        return None
    if not isinstance(number, int) or not 0 <= number < len(tables):
        raise ValueError("a schema names no table of types")
    types, names = tables[number]
    return Schema(
        dig(value, "root"),
        types,
        names,
        builtin=dig(value, "builtin") is True,
        custom=_read_custom(dig(value, "custom")),
        needs_all_keys=dig(value, "needsAllKeys") is True,
    )


def _read_custom(value: Json) -> Custom | None:
    if value is None:
        return None
    versions: JsonObject | None = as_object(dig(value, "versions")) if dig(value, "versions") is not None else None
    defined = None
    if versions is not None:
        stored, schema = as_text(versions.get("stored")), as_object(versions.get("schema"))
        defined = DefinedVersions(
            texts(versions.get("names")), stored, schema, relabels=versions.get("relabels") is True
        )
    return Custom(as_object(dig(value, "schema")), has_status=dig(value, "hasStatus") is True, versions=defined)

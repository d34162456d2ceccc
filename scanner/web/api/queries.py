"""The parameters of endpoints as records: names, types, patterns and limits, which requests are checked by and documented with.

An empty value means the default, as in the addresses that a form makes. Unknown names and invalid values are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request

from scanner.model.json import JsonObject, as_list, as_object
from scanner.model.list_fields import SortOrder
from scanner.model.nearest import did_you_mean
from scanner.report.lists.filters import ListFilter
from scanner.web.pages.findings import FIELDS, LONGEST, list_filter
from scanner.web.requests.addresses import ScanMoment
from scanner.web.requests.refusals import BadRequest, NotThere, TooLong

MOST: Final = 1_000
"""The items of the longest page."""
_DATE: Final = "^([0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2})?Z)?)?$"

Limit: TypeAlias = Annotated[int, Meta(ge=1, le=MOST, description="The items of a page.")]
After: TypeAlias = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9_-]*$",
        max_length=400,
        description="The `next` of the page before, with the other parameters unchanged.",
    ),
]
PRINTABLE: Final = "^[^\\x00-\\x1f\\x7f]*$"
Text: TypeAlias = Annotated[str, Meta(max_length=LONGEST, pattern=PRINTABLE)]
Date: TypeAlias = Annotated[str, Meta(pattern=_DATE)]
PolicyPattern: TypeAlias = Annotated[Text, Meta(description="A policy, or a pattern such as `require-*`.")]


class Query(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The parameters of an endpoint: none."""

    @property
    def moment(self) -> ScanMoment:
        """The scan that the request names."""
        return ScanMoment()

    @property
    def cursor(self) -> str:
        """The place after which the page begins; empty for the first page."""
        return ""


class ListQuery(Query, frozen=True, kw_only=True):
    """The parameters of a list that is about no single scan."""

    limit: Limit = 100
    after: After = ""

    @property
    def cursor(self) -> str:
        """The place after which the page begins."""
        return self.after


class ScanQuery(Query, frozen=True, kw_only=True):
    """The parameters that name a scan of a cluster; by default, the newest complete or incomplete one."""

    scan: Annotated[
        str, Meta(pattern="^[A-Za-z0-9._:-]*$", max_length=100, description="The full id of a scan of the cluster.")
    ] = ""
    at: Annotated[
        Date,
        Meta(
            description="A date, or a time in UTC: the newest scan that had ended by then. A date means its end in UTC. "
            "Waivers are those of that day."
        ),
    ] = ""

    @property
    def moment(self) -> ScanMoment:
        """The scan that the request names."""
        return ScanMoment(self.scan, self.at)


class ScanListQuery(ScanQuery, frozen=True, kw_only=True):
    """The parameters of a list of a scan."""

    limit: Limit = 100
    after: After = ""

    @property
    def cursor(self) -> str:
        """The place after which the page begins."""
        return self.after


class ProblemQuery(ScanListQuery, frozen=True, kw_only=True):
    """The filters of findings and problems, which are those of the page of findings."""

    text: Annotated[Text, Meta(description="Words of objects, workloads, messages, policies, owners or ids.")] = ""
    policy: Annotated[Text, Meta(description="The name or the title of a policy, or a glob such as `require-*`.")] = ""
    namespace: Annotated[Text, Meta(description="A namespace or a glob; `_cluster` for cluster-scoped objects.")] = ""
    owner: Annotated[
        Text, Meta(description="The team that owns the objects, or a glob; `unowned` for objects without an owner.")
    ] = ""
    workload: Annotated[
        Text,
        Meta(
            description="A workload as the list shows it, such as `Deployment shop/web`, or without its namespace, "
            "`Deployment/web`; the name may be a glob."
        ),
    ] = ""
    kind: Annotated[Text, Meta(description="The kind of the objects, or a glob.")] = ""
    severity: Annotated[
        Literal["", "critical", "high", "medium", "low", "info"], Meta(description="The severity of the check.")
    ] = ""
    min_severity: Annotated[
        Literal["", "critical", "high", "medium", "low", "info"],
        Meta(description="The lowest severity of the check."),
    ] = ""
    action: Annotated[
        Literal["", "refused", "Deny", "RefusePods", "Warn", "Audit", "Errored", "change"],
        Meta(
            description="The strictest action of the bindings; `refused` for what admission would refuse, `Errored` for errors, "
            "`change` for drift."
        ),
    ] = ""
    status: Annotated[
        Literal[
            "",
            "unresolved",
            "open",
            "new",
            "reopened",
            "waived",
            "excepted",
            "unchecked",
            "preview",
            "outdated",
            "resolved",
        ],
        Meta(
            description="The status of the problem: `unresolved` is every status but `resolved`, `open` leaves out waived and "
            "excepted problems, too. With a status besides `resolved`, resolved findings are left out."
        ),
    ] = ""
    sort: Annotated[
        Literal["", "worst", "oldest", "newest", "severity", "workload", "policy", "owner"],
        Meta(description="The order of problems. Default: `worst`, the worst first."),
    ] = ""
    id: Annotated[
        tuple[Annotated[str, Meta(pattern="^(p-)?[0-9a-f]{12}$")], ...],
        Meta(max_length=100, description="The id of a problem or of a finding; may be repeated."),
    ] = ()

    @property
    def filter(self) -> ListFilter:
        """The filter without the ids."""
        values = {name: getattr(self, name).strip() for name in FIELDS}
        return list_filter({**values, "sort": values["sort"] or SortOrder.WORST}, self.min_severity)


# Reads the parameters of a request, and refuses unknown names and invalid values with what is valid.

LONGEST_QUERY: Final = 4_096
"""The longest query of an address, in bytes."""
PATH_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "cluster": ("^[A-Za-z0-9_-]{1,60}\\.[0-9a-f]{8}$", "The key of a cluster, as `/clusters` lists it."),
    "problem": ("^p-[0-9a-f]{12}$", "The id of a problem."),
    "run": ("^[1-9][0-9]{0,8}$", "The number of a run."),
}
"""The pattern and the meaning of each variable part of a path."""
_CONTROL: Final = re.compile("[\x00-\x1f\x7f]")
_WHERE: Final = re.compile(r" - at `\$\.?([A-Za-z]*)[^`]*`$")
_SHOWN: Final = 80

QueryT = TypeVar("QueryT", bound=Query)


def query_of(request: Request, kind: type[QueryT]) -> QueryT:
    """The parameters of a request. Raises BadRequest, and TooLong."""
    if len(request.scope.get("query_string", b"")) > LONGEST_QUERY:
        raise TooLong(f"The query of an address has at most {LONGEST_QUERY:,} bytes.")
    known = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    values_by_name: dict[str, str | list[str]] = {}
    for name in request.query_params:
        if name not in known:
            raise BadRequest(f"There is no parameter {name[:_SHOWN]!r}.{_parameters(name, known)}")
        values = request.query_params.getlist(name)
        if any(map(_CONTROL.search, values)):
            raise BadRequest(f"{name}: the value has a control character.")
        is_list = isinstance(known[name].default, tuple)
        if len(values) > 1 and not is_list:
            raise BadRequest(f"{name}: give one value.")
        values_by_name[name] = values if is_list else values[0]
    if values_by_name.get("scan") and values_by_name.get("at"):
        raise BadRequest("Give scan or at: each names a scan.")
    try:
        return msgspec.convert(values_by_name, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequest(_message(str(error), kind)) from error


def _parameters(name: str, known: Mapping[str, object]) -> str:
    """The nearest parameter, or all."""
    return did_you_mean(name, known) or (f" The parameters are: {', '.join(known)}." if known else "")


def _message(text: str, kind: type[Query]) -> str:
    """The message of an invalid value: the name of its parameter, and the rule that it breaks."""
    where = _WHERE.search(text)
    if where is None:
        return text
    rule = as_object(fields_of(kind)[where[1]])
    values = [str(value) for value in as_list(rule.get("enum")) if value]
    expected = f"give one of {', '.join(values)}" if values else text[: where.start()].replace("`", "")
    return f"{where[1]}: {expected}."


@cache
def fields_of(kind: type[Query]) -> JsonObject:
    """The schemas of the parameters of a record, by name."""
    _, named = msgspec.json.schema_components([kind])
    return as_object(as_object(named[kind.__name__])["properties"])


def path_of(request: Request) -> Mapping[str, str]:
    """The variable parts of a path. Raises NotThere for one that no address can have."""
    parts = {name: str(value) for name, value in request.path_params.items()}
    for name, value in parts.items():
        if not re.fullmatch(PATH_PARTS[name][0].strip("^$"), value):
            raise NotThere(f"{value[:_SHOWN]!r} names no {name}. {PATH_PARTS[name][1]}")
    return parts

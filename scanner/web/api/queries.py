"""The parameters of endpoints as records: names, types, patterns and limits, which requests are checked by and documented with.

An empty value means the default, as in the addresses that a form makes.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from scanner.report.lists.filters import ListFilter
from scanner.web.addresses import Moment
from scanner.web.finding_pages import FIELDS, LONGEST, list_filter

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
    def moment(self) -> Moment:
        """The scan that the request names."""
        return Moment()

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
    def moment(self) -> Moment:
        """The scan that the request names."""
        return Moment(self.scan, self.at)


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
        Literal["", "critical", "high", "medium", "low", "info"], Meta(description="The severity of the policy.")
    ] = ""
    min_severity: Annotated[
        Literal["", "critical", "high", "medium", "low", "info"],
        Meta(description="The lowest severity of the policy."),
    ] = ""
    action: Annotated[
        Literal["", "refused", "Deny", "Warn", "Audit", "Errored", "change"],
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
        return list_filter({name: getattr(self, name).strip() for name in FIELDS}, self.min_severity)

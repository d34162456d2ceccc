"""The fields of a problem, as `assay findings --problems -o json` has them."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from scanner.web.api.pages import Answer
from scanner.web.api.schemas import CauseJson, CheckJson, WaiverJson, WorkloadJson

Time: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Number: TypeAlias = Annotated[int, Meta(ge=0)]


class Problem(Answer, frozen=True, kw_only=True):
    """A problem: one check of one policy that one workload breaks."""

    id: Annotated[
        str, Meta(description="The id, the same in every database; for rows of older versions, that of a finding.")
    ]
    status: Literal["new", "open", "reopened", "resolved", "preview", "outdated", "unchecked"]
    first_seen: Annotated[Time, Meta(description="End of the first scan with the problem. RFC 3339, UTC.")]
    last_seen: Annotated[Time, Meta(description="End of the latest scan with the problem.")]
    opened_at: Annotated[Time, Meta(description="Beginning of the latest episode.")]
    resolved_at: Annotated[Time | None, Meta(description="End of the scan that resolved it; null while it is open.")]
    resolution: Annotated[
        Literal["fixed", "moved", "noObjects", "objectGone", "rulesChanged", "unbound", "notMatched"] | None,
        Meta(description="Why it was resolved; null while it is open, and if it is not known."),
    ]
    moved_to: Annotated[
        list[str], Meta(description="The ids of the problems in which its findings go on, if it was resolved as moved.")
    ]
    cause: Annotated[CauseJson | None, Meta(description="What changed, if the scan found it changed; else null.")]
    policy: Annotated[str, Meta(description="Name of the policy.")]
    language: Annotated[str, Meta(description="Kind of the policy.")]
    severity: Literal["critical", "high", "medium", "low", "info"]
    owner: Annotated[str | None, Meta(description="The team that owns the object; null for an unowned object.")]
    controls: Annotated[list[str], Meta(description="The controls that the policy serves, as framework/id.")]
    check: CheckJson
    workload: WorkloadJson
    action: Annotated[
        Literal["Deny", "Warn", "Audit"] | None,
        Meta(description="The strictest action of the bindings; null for none."),
    ]
    would_deny: Annotated[bool, Meta(description="Whether admission would deny one of the objects today.")]
    waiver: Annotated[
        WaiverJson | None, Meta(description="The waiver that ends first, if all open findings are waived; else null.")
    ]
    findings: Annotated[Number, Meta(description="Number of its open findings.")]
    unchecked: Annotated[Number, Meta(description="Number of its findings that the scan did not check.")]

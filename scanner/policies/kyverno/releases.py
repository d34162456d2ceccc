"""The differences between Kyverno releases: one row for each change of a rule by which policies are evaluated.

Source of truth: `pkg/cel/autogen`, `pkg/cel/engine`, `pkg/cel/policies/vpol` and `pkg/controllers/webhook` of Kyverno 1.16.3, 1.17.2, 1.18.2 and 1.19.1. Each
row has the upstream name. Code that depends on a row reads it by its name.

Rules: `docs/kyverno.md#releases`.
"""

from __future__ import annotations

from typing import Final

from scanner.cel.releases import ReleaseChange
from scanner.model.release import Minor, Release, format_minor, minor_of

OLDEST: Final[Minor] = (1, 16)
NEWEST: Final[Minor] = (1, 19)

# --- autogen: pkg/cel/autogen

AUTOGEN_WITH_NAMESPACE_SELECTOR = ReleaseChange(
    "autogen with a namespace selector",
    "A policy with a namespace selector has autogen variants, which keep the selector: CanAutoGen.",
    since=(1, 19),
)
KEPT_NAMESPACE = ReleaseChange(
    "kept namespace", "Autogen keeps `object.metadata.namespace` as it is: isProtected.", since=(1, 19)
)
EXTRACTED_TEMPLATES = ReleaseChange(
    "extracted templates",
    "Autogen evaluates the pod templates of other workloads that a policy names: ResolveConfig.",
    since=(1, 19),
)

# --- exceptions: pkg/cel/policies/vpol/compiler, pkg/cel/engine

FULL_BESIDE_PARTIAL = ReleaseChange(
    "full beside partial",
    "An exception without images and values exempts an object also beside exceptions that have some: evaluateWithData.",
    since=(1, 19),
)
EXCEPTIONS_END = ReleaseChange("end of exceptions", "An exception ends at `expiresAt`: ListExceptions.", since=(1, 19))

# --- evaluation: pkg/cel/policies/vpol/compiler

DEFAULT_MESSAGE = ReleaseChange(
    "default message",
    "A failed validation without a message has one that names its index: evaluateWithData.",
    since=(1, 17),
)
ANNOTATED_PASSES = ReleaseChange(
    "annotated passes",
    "Audit annotations are evaluated for an object that passes, too: evaluateAuditAnnotations.",
    since=(1, 18),
)
OWN_ERRORS = ReleaseChange(
    "own errors",
    "The error of a validation, or of an audit annotation after one that fails, begins with `error`, before with "
    "`failed to load context`: EvaluationResult.",
    since=(1, 19),
)

# --- Kyverno's reports: pkg/cel/policies/vpol/engine, pkg/controllers/report

INDEXED_RESULTS = ReleaseChange(
    "indexed results",
    "A failure in Kyverno's report has the index of its validation: withValidationIndex.",
    since=(1, 19),
)
SCANNED_NAMESPACED = ReleaseChange(
    "scanned namespaced",
    "Kyverno's background scan evaluates namespaced policies: ScanResource.",
    since=(1, 17),
)

# --- webhooks: pkg/controllers/webhook

REGISTERED_VARIANTS = ReleaseChange(
    "registered variants",
    "The autogen variants of a namespaced policy that shares a webhook are enforced: buildWebhookRules.",
    since=(1, 19),
)
KEPT_CONDITIONS = ReleaseChange(
    "kept conditions",
    "Kyverno alone evaluates a match condition that reads `namespaceObject`: webhookMatchConditions.",
    since=(1, 19),
)
OWN_NAMESPACE_ALONE = ReleaseChange(
    "own namespace alone",
    "The API server evaluates the match conditions of a namespaced policy in no other namespace: resolveNamespaceSelector.",
    since=(1, 19),
)
SEPARATE_SELECTORS = ReleaseChange(
    "separate selectors", "Policies with different selectors share no webhook: groupBySelectors.", since=(1, 19)
)
UNIQUE_NAMES = ReleaseChange(
    "unique names", "The webhooks of namespaced policies of one name have different names: generateName.", since=(1, 17)
)

# --- namespaced policies: pkg/cel/compiler

CONFINED_HTTP = ReleaseChange(
    "confined http",
    "A namespaced policy makes no HTTP request without a setting: NewLazyCELHTTPContext.",
    since=(1, 18),
)
CONFINED_GLOBAL_CONTEXT = ReleaseChange(
    "confined global context", "A namespaced policy reads no global context: ConfineGlobalContext.", since=(1, 19)
)

# --- libraries: kyverno/sdk, cel/libs; declarations.json beside the libraries has what each release declares

TAGS_OF_DIGESTS = ReleaseChange(
    "tags of digests", "A reference with a tag and a digest has both: tagFromTaggedDigestReference.", since=(1, 19)
)
JSON_NULLS = ReleaseChange(
    "json nulls", "`json.marshal` writes null as null, before as 0: toJsonNative.", since=(1, 19)
)

MISSING_IS_NULL = ReleaseChange(
    "missing is null",
    "`resource.Get` of an object that does not exist is null, before an error: get_resource_string_string_string_string.",
    since=(1, 18),
)

CHANGES: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, ReleaseChange))


def release_of(version: str) -> Release:
    """The rules for a version of Kyverno, such as `v1.18.2`: those of the nearest release that Assay supports."""
    minor = minor_of(version)
    if minor is None:
        return newest_for(f"Kyverno has no release {version!r}")
    if minor > NEWEST:
        return Release(NEWEST, f"Kyverno {format_minor(minor)} is newer than Assay supports. {_applied(NEWEST)}.")
    if minor < OLDEST:
        return Release(OLDEST, f"Kyverno {format_minor(minor)} is older than Assay supports. {_applied(OLDEST)}.")
    return Release(minor)


def newest_for(why: str) -> Release:
    """The rules of the newest release, with the reason why the installed one is not known."""
    return Release(NEWEST, f"{why}. {_applied(NEWEST)}: name another release with --kyverno-version.")


def _applied(rules: Minor) -> str:
    return f"Assay applied the rules of Kyverno {format_minor(rules)}"

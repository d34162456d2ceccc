"""The evaluation of a request by one binding of Pod Security: each check that its level demands has one outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.evaluator import SKIPPED, FastForm, Skip
from scanner.admission.request import Request
from scanner.model.json import JsonObject, as_list, as_object, as_text, dig, text_map
from scanner.model.outcome import Check, CheckResult, FieldPlace, Outcome, Passed, Skipped, SkipReason, Violated
from scanner.model.resource import Kind, Resource
from scanner.policies.pod_security.baseline import ANNOTATIONS, Failure
from scanner.policies.pod_security.derived import differs, make_pod
from scanner.policies.pod_security.labels import Mode
from scanner.policies.pod_security.pods import TEMPLATES, Pod, find_template, is_significant, list_read_fields, read_pod
from scanner.policies.pod_security.restricted import PodCheck
from scanner.policies.pod_security.standards import Server, apply_checks

REFUSED: Final = 403
_REASON: Final = "Forbidden"
_MIRROR: Final = "kubernetes.io/config.mirror"
READ_FIELDS: Final = frozenset({*list_read_fields(*ANNOTATIONS, _MIRROR), ("object", "status", "phase")})
"""The access paths of all that decides about an object; see `CompiledPolicy.read_fields`."""
_FINISHED: Final = ("Succeeded", "Failed")
_JUDGED_ON_OWNER: Final = {("apps", "replicasets"): "Deployment", ("batch", "jobs"): "CronJob"}
"""The resources whose objects mostly belong to another workload, and the kind of that."""
_SAME_CONTAINERS = Skipped(SkipReason.CONDITION_FALSE, "the update changes no container")
_NO_SPEC = Skipped(SkipReason.CONDITION_FALSE, "the object has no pod spec")


class Seen:
    """The latest pod or template with its failures: each binding of a level and version asks for them in turn."""

    __slots__ = ("_document", "_failures", "_pod")

    def __init__(self) -> None:
        """Begin with an empty one."""
        self._document: JsonObject = {}
        self._pod = read_pod((), self._document)
        self._failures: Mapping[str, Failure] | None = None

    def read(self, place: FieldPlace, document: JsonObject) -> Pod:
        """Read a document at a place of its object, once."""
        if document is not self._document:
            self._document, self._pod, self._failures = document, read_pod(place, document), None
        return self._pod

    def judge(self, checks: Mapping[str, PodCheck]) -> Mapping[str, Failure]:
        """The failures of the document that was read last, judged once."""
        if self._failures is None:
            self._failures = apply_checks(checks, self._pod)
        return self._failures


class Judge(Struct, frozen=True):
    """Evaluates one binding: the checks that a level demands at a policy version. Satisfies `Evaluator`.

    `checks` are those of the level at the version. With `of_pods` the pods of a template are judged, and not the template as it is
    stored. `seen` is shared by the judges of one level and version, so that a pod is judged once for all modes.
    """

    mode: Mode
    server: Server
    checks: Mapping[str, PodCheck]
    seen: Seen
    of_pods: bool = False

    @property
    def reads_whole_object(self) -> bool:
        """See Evaluator: pods and templates have no data of Secrets."""
        return False

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        """See Evaluator."""
        del param
        body, kind = request.resource.body, request.matched
        if self.of_pods and (owner := _find_owner(kind, body)):
            skipped = Skipped(SkipReason.CONDITION_FALSE, f"the pods of {owner} are judged")
            return tuple(CheckResult(check, skipped) for check in compiled.checks)
        if request.old and (kind.group, kind.plural) == ("", "pods") and not is_significant(body, request.old.body):
            return tuple(CheckResult(check, _SAME_CONTAINERS) for check in compiled.checks)
        failures = self.judge(kind, body)
        if failures is None:
            return tuple(CheckResult(check, _NO_SPEC) for check in compiled.checks)
        labels = text_map(dig(request.namespace_object, "metadata", "labels"))
        deciding = (*_find_marks(body), *self._find_labels(labels))
        return tuple(self._result(check, failures.get(check.expression), deciding) for check in compiled.checks)

    def judge(self, kind: Kind, body: JsonObject) -> Mapping[str, Failure] | None:
        """The failures of an object by the ids of the checks; None for an object without the spec of a pod."""
        found = find_template(kind, body)
        if found is None:
            return None
        place, document = found
        pod = self.seen.read(place, document)
        if self.of_pods and differs(pod):
            return apply_checks(self.checks, read_pod(place, make_pod(document, self.server.release)))
        return self.seen.judge(self.checks)

    def _find_labels(self, labels: Mapping[str, str]) -> tuple[FieldPlace, ...]:
        """The labels of the namespace that decide the level and the version of the mode; none where defaults do."""
        mode = self.mode
        if mode is Mode.WARN and mode.level_key not in labels and Mode.ENFORCE.level_key in labels:
            mode = Mode.ENFORCE
        keys = (key for key in (mode.level_key, mode.version_key) if key in labels)
        return tuple(("namespaceObject", "metadata", "labels", key) for key in keys)

    def _result(self, check: Check, failure: Failure | None, deciding: tuple[FieldPlace, ...]) -> CheckResult:
        if failure is None:
            return CheckResult(check, Passed())
        outcome: Outcome = Violated(failure.text, _REASON, REFUSED)
        return CheckResult(check, outcome, fields=(*failure.fields, *deciding))

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> dict[str, object]:
        """See Evaluator: there are no expressions."""
        del compiled, request, param, check
        return {}

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        """See Evaluator: a pod without a failure passes."""
        del compiled
        return FastForm((lambda inputs: self._passes(kind, inputs["object"]),))

    def _passes(self, kind: Kind, body: object) -> bool | Skip:
        if not isinstance(body, Mapping):
            return False
        if self.of_pods and _find_owner(kind, body):
            return SKIPPED
        failures = self.judge(kind, body)
        return failures is not None and not failures


def _find_owner(kind: Kind, body: JsonObject) -> str:
    """The workload that makes the objects of this kind, and on which their pods are judged; empty for an object of its own."""
    owner_kind = _JUDGED_ON_OWNER.get((kind.group, kind.plural))
    owners = as_list(dig(body, "metadata", "ownerReferences")) if owner_kind else ()
    names = (as_object(owner) for owner in owners if dig(owner, "controller") is True)
    return next((f"{owner_kind} {as_text(each.get('name'))}" for each in names if each.get("kind") == owner_kind), "")


def _find_marks(body: JsonObject) -> tuple[FieldPlace, ...]:
    """The places that show that a refusal concerns no running pod: it has ended, or is the mirror of a static pod."""
    ended = body.get("kind") == "Pod" and dig(body, "status", "phase") in _FINISHED
    mirror = dig(body, "metadata", "annotations", _MIRROR) is not None
    return (
        *((("object", "status", "phase"),) if ended else ()),
        *((("object", "metadata", "annotations", _MIRROR),) if mirror else ()),
    )


WORKLOADS: Final = tuple(TEMPLATES)
"""The resources with templates, by group and plural."""

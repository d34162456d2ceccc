"""The differences that stay, each with its reason: what a server does to a request besides its policies.

Validation comes after admission. A refusal by it says nothing about a prediction that the policy changes the object; where the
prediction is that the object is left as it is, the server would have to take what it holds already, and the difference counts,
except for metadata that no write may change: Assay compares objects without it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.integration.fuzz.case import Made, Refused
from tests.integration.fuzz.compare import Compared

_OWN = "uid|resourceVersion|creationTimestamp|deletionTimestamp|deletionGracePeriodSeconds|generation|managedFields"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Refusals with this status and these words; `always`, even where Assay predicts no change."""

    reason: str
    code: int
    words: str
    always: bool = False

    def covers(self, difference: Compared, *, changed: bool) -> bool:
        """Whether a difference is one of these."""
        theirs = difference.theirs
        if not isinstance(theirs, Refused) or not isinstance(difference.ours, Made) or not (changed or self.always):
            return False
        return theirs.code == self.code and re.match(self.words, theirs.message, re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class Content:
    """Objects that differ at these paths alone."""

    reason: str
    kinds: str
    operations: str
    paths: str

    def covers(self, difference: Compared, *, changed: bool) -> bool:
        """Whether a difference is one of these."""
        del changed
        return (
            bool(difference.paths)
            and re.match(f"({self.kinds})/", difference.where) is not None
            and re.fullmatch(self.operations, difference.operation) is not None
            and all(re.fullmatch(self.paths, path) for path in difference.paths)
        )


EXPLAINED: tuple[Refusal | Content, ...] = (
    Refusal(
        "metadata that is the server's own must stay as it is",
        422,
        rf"\S+ \".*\" is invalid: .*\bmetadata\.({_OWN}): ",
        always=True,
    ),
    Refusal(
        "a null that is dropped when a custom resource is read is refused before that",
        422,
        r"\S+ \".*\" is invalid: .* in body must be of type [\w,]+: \"null\"",
        always=True,
    ),
    Refusal(
        "a field that a Service of this type does not keep is validated before it is dropped",
        422,
        r"Service \".*\" is invalid: spec\.internalTrafficPolicy: Unsupported value: ",
        always=True,
    ),
    Refusal(
        "an empty map, which is not stored, is compared with none by the validation of an immutable ConfigMap",
        422,
        r"ConfigMap \".*\" is invalid: (binaryData|data): Forbidden: field is immutable when `immutable` is set",
        always=True,
    ),
    Refusal(
        "an empty list of policies, which is not stored and so read as the default, is validated before that",
        422,
        r"HorizontalPodAutoscaler\S* \".*\" is invalid: spec\.behavior\.scale(Up|Down)\.policies: Required value: ",
        always=True,
    ),
    Refusal("the validation of the kind refuses the mutated object", 422, r"\S+ \".*\" is invalid: "),
    Refusal(
        "a create is refused what an update puts back: addresses of a Service",
        422,
        r"Service \".*\" is invalid: spec\.clusterIPs: Invalid value: .*: must be empty when `clusterIP` is not specified",
        always=True,
    ),
    Refusal(
        "a create is refused what an update puts back: finalizers of a Namespace",
        422,
        r"Namespace \".*\" is invalid: .*spec\.finalizers(\[\d+\])?: ",
        always=True,
    ),
    Refusal(
        "a create is refused what an update puts back: the plug-in Priority computes it",
        403,
        r"pods \".*\" is forbidden: the .* must not be provided in pod spec; priority admission controller computed ",
        always=True,
    ),
    Refusal(
        "the plug-in RuntimeClass looks up the class of the mutated Pod, and its client takes no empty name",
        500,
        r"resource name may not be empty$",
    ),
    Refusal("another admission plug-in refuses the mutated object", 403, r"\S+ \".*\" is forbidden: "),
    Refusal(
        "an empty map, which is not stored, is refused where no map may be",
        422,
        r"CustomResourceDefinition\S* .* is not supported\]?$",
        always=True,
    ),
    Refusal(
        "the object is not the one that the request names", 400, r"the name(space)? of the .*object .*does not match "
    ),
    Refusal("the resource version is no number", 500, r"strconv\.ParseUint: parsing ", always=True),
    Refusal(
        "the update is about another version of the object", 409, r"Operation cannot be fulfilled on ", always=True
    ),
    Refusal(
        "metadata of another type cannot be read when a custom resource is converted to its stored version",
        500,
        r"json: cannot unmarshal [^{}]+ into Go struct field ObjectMeta\.|parsing time \".*\" as ",
        always=True,
    ),
    Refusal(
        "a created object lacks its metadata", 500, r"Internal error occurred: system metadata was not initialized"
    ),
    Content("a dry run shows selfLink, which is never stored", r"\w+", "CREATE|UPDATE", r"/metadata/selfLink"),
    Content(
        "a created object keeps what its metadata says of a deletion",
        r"\w+",
        "CREATE",
        r"/metadata/deletion(GracePeriodSeconds|Timestamp)",
    ),
    Content("a created object without metadata gets some", r"\w+", "CREATE", r"/metadata(/name|/namespace)?"),
    Content(
        "the plug-ins DefaultTolerationSeconds and Priority run once more after a mutation",
        "Pod",
        "CREATE|UPDATE",
        r"/spec/(tolerations(/.*)?|priority|preemptionPolicy|priorityClassName)",
    ),
    Content(
        "the plug-in StorageObjectInUseProtection runs once more after a mutation",
        "PersistentVolume|PersistentVolumeClaim|VolumeAttributesClass",
        "CREATE",
        r"/metadata/finalizers(/.*)?",
    ),
    Content(
        "a created Job gets a selector and labels of its own",
        "Job",
        "CREATE",
        r"/spec/(selector|template/metadata/labels|template/metadata)(/.*)?"
        r"|/metadata/labels(/(batch\.kubernetes\.io/)?(controller-uid|job-name))?",
    ),
    Content(
        "a taint without a time gets the time of the request",
        "DeviceTaintRule",
        "CREATE|UPDATE",
        r"/spec/taint/timeAdded",
    ),
    Content(
        "the server allocates a free port or address",
        "Service",
        "CREATE|UPDATE",
        r"/spec/(ports/\d+/nodePort|healthCheckNodePort|clusterIP|clusterIPs(/\d+)?)",
    ),
)
"""Nothing is explained by an entry that does not name the words or the paths that it is about."""


def reason(difference: Compared, *, changed: bool) -> str | None:
    """The reason why a difference is expected, else None; `changed` is true if Assay predicts a change of the object."""
    return next(
        (explanation.reason for explanation in EXPLAINED if explanation.covers(difference, changed=changed)), None
    )

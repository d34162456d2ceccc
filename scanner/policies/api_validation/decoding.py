"""Decodes a policy or binding as the API server does before it validates, or raises the server's error.

Source of truth: the decoder of `sigs.k8s.io/json` in its lenient form, which drops fields that a type does not have, and the
defaults and checks of `metav1.Time`. Names of fields are case-sensitive. Null is an absent field, and an empty element of a list.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TypeAlias, assert_never

from msgspec import Struct

from scanner.errors import InvalidManifest
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text
from scanner.policies.manifest import UnknownField, make_unknown_field

# The Go types of policies and bindings, as data: the JSON that each type decodes, and its name in errors.
#
# Source of truth: `k8s.io/api/admissionregistration` v1, v1beta1 and v1alpha1, and `metav1.ObjectMeta` of Kubernetes
# 1.36. Versions have the same fields; names that v1beta1 and v1alpha1 only alias are those of v1.


class ScalarType(Struct, frozen=True):
    """A text, a number or a bool; `name` is the name of the type in Go, `takes` the name in JSON."""

    name: str
    takes: str = "string"


class TimeType(Struct, frozen=True):
    """A `metav1.Time`, which has its own decoder."""

    name: str = "string"


class AnyType(Struct, frozen=True):
    """JSON without a type."""

    name: str = ""


class LabelsType(Struct, frozen=True):
    """A map of texts."""

    name: str = "map[string]string"


class ArrayType(Struct, frozen=True):
    """A list of one type."""

    item: ScalarType | StructType

    @property
    def name(self) -> str:
        """The name of the type in Go."""
        return f"[]{self.item.name}"


class StructType(Struct, frozen=True):
    """A struct; `embedded` maps its fields from embedded structs to the path in errors."""

    name: str
    fields: Mapping[str, Type]
    embedded: Mapping[str, str]

    @property
    def bare_name(self) -> str:
        """The name without the package."""
        return self.name.rpartition(".")[2]


Type: TypeAlias = ScalarType | TimeType | AnyType | LabelsType | ArrayType | StructType


def _name_struct(go_name: str, /, **fields: Type) -> StructType:
    return StructType(go_name, fields, {})


_STRING = ScalarType("string")
_TEXTS = ArrayType(_STRING)
_BOOL = ScalarType("bool", "bool")
_LONG = ScalarType("int64", "number")
_UID = ScalarType("types.UID")
_OWNER = _name_struct(
    "v1.OwnerReference",
    apiVersion=_STRING,
    kind=_STRING,
    name=_STRING,
    uid=_UID,
    controller=_BOOL,
    blockOwnerDeletion=_BOOL,
)
_MANAGED = _name_struct(
    "v1.ManagedFieldsEntry",
    manager=_STRING,
    operation=ScalarType("v1.ManagedFieldsOperationType"),
    apiVersion=_STRING,
    time=TimeType(),
    fieldsType=_STRING,
    fieldsV1=AnyType(),
    subresource=_STRING,
)
METADATA = _name_struct(
    "v1.ObjectMeta",
    name=_STRING,
    generateName=_STRING,
    namespace=_STRING,
    selfLink=_STRING,
    uid=_UID,
    resourceVersion=_STRING,
    generation=_LONG,
    creationTimestamp=TimeType(),
    deletionTimestamp=TimeType(),
    deletionGracePeriodSeconds=_LONG,
    labels=LabelsType(),
    annotations=LabelsType(),
    ownerReferences=ArrayType(_OWNER),
    finalizers=_TEXTS,
    managedFields=ArrayType(_MANAGED),
)
_SELECTOR = _name_struct(
    "v1.LabelSelector",
    matchLabels=LabelsType(),
    matchExpressions=ArrayType(
        _name_struct(
            "v1.LabelSelectorRequirement", key=_STRING, operator=ScalarType("v1.LabelSelectorOperator"), values=_TEXTS
        )
    ),
)
_RULE = ("apiGroups", "apiVersions", "resources", "scope")
_CONDITION = _name_struct(
    "v1.Condition",
    type=_STRING,
    status=ScalarType("v1.ConditionStatus"),
    observedGeneration=_LONG,
    lastTransitionTime=TimeType(),
    reason=_STRING,
    message=_STRING,
)


@cache
def list_types(version: str) -> Mapping[str, StructType]:
    """The four kinds in a version of the API."""
    return {
        **_make_kind("ValidatingAdmissionPolicy", version, _make_validating(version), _make_status(version)),
        **_make_kind("MutatingAdmissionPolicy", version, _make_mutating(version)),
        **_make_kind(
            "ValidatingAdmissionPolicyBinding",
            version,
            {**_make_binding(version), "validationActions": ArrayType(ScalarType(f"{version}.ValidationAction"))},
        ),
        **_make_kind("MutatingAdmissionPolicyBinding", version, _make_binding(version)),
    }


def _make_kind(
    name: str, version: str, spec: Mapping[str, Type], status: StructType | None = None
) -> Mapping[str, StructType]:
    fields: dict[str, Type] = {"apiVersion": _STRING, "kind": _STRING, "metadata": METADATA}
    fields["spec"] = StructType(f"{version}.{name}Spec", spec, {})
    return {name: _name_struct(f"{version}.{name}", **fields, **({"status": status} if status else {}))}


def _make_validating(version: str) -> Mapping[str, Type]:
    return {
        **_make_policy_fields(version),
        "validations": ArrayType(
            _name_struct(
                f"{version}.Validation",
                expression=_STRING,
                message=_STRING,
                reason=ScalarType("v1.StatusReason"),
                messageExpression=_STRING,
            )
        ),
        "auditAnnotations": ArrayType(_name_struct(f"{version}.AuditAnnotation", key=_STRING, valueExpression=_STRING)),
    }


def _make_mutating(version: str) -> Mapping[str, Type]:
    return {
        **_make_policy_fields(version),
        "mutations": ArrayType(
            _name_struct(
                f"{version}.Mutation",
                patchType=ScalarType(f"{version}.PatchType"),
                applyConfiguration=_name_struct(f"{version}.ApplyConfiguration", expression=_STRING),
                jsonPatch=_name_struct(f"{version}.JSONPatch", expression=_STRING),
            )
        ),
        "reinvocationPolicy": ScalarType("v1.ReinvocationPolicyType"),
    }


def _make_policy_fields(version: str) -> Mapping[str, Type]:
    return {
        "paramKind": _name_struct(f"{version}.ParamKind", apiVersion=_STRING, kind=_STRING),
        "matchConstraints": _make_match(version),
        "matchConditions": ArrayType(_name_struct(f"{version}.MatchCondition", name=_STRING, expression=_STRING)),
        "variables": ArrayType(_name_struct(f"{version}.Variable", name=_STRING, expression=_STRING)),
        "failurePolicy": ScalarType(f"{version}.FailurePolicyType"),
    }


def _make_binding(version: str) -> Mapping[str, Type]:
    return {
        "policyName": _STRING,
        "paramRef": _name_struct(
            f"{version}.ParamRef",
            name=_STRING,
            namespace=_STRING,
            selector=_SELECTOR,
            parameterNotFoundAction=ScalarType(f"{version}.ParameterNotFoundActionType"),
        ),
        "matchResources": _make_match(version),
    }


def _make_match(version: str) -> StructType:
    rule = StructType(
        f"{version}.NamedRuleWithOperations",
        {
            "resourceNames": _TEXTS,
            "operations": ArrayType(ScalarType("v1.OperationType")),
            **dict.fromkeys(_RULE[:-1], _TEXTS),
            "scope": ScalarType("v1.ScopeType"),
        },
        {"operations": "RuleWithOperations.operations", **{name: f"RuleWithOperations.Rule.{name}" for name in _RULE}},
    )
    return _name_struct(
        f"{version}.MatchResources",
        namespaceSelector=_SELECTOR,
        objectSelector=_SELECTOR,
        resourceRules=ArrayType(rule),
        excludeResourceRules=ArrayType(rule),
        matchPolicy=ScalarType(f"{version}.MatchPolicyType"),
    )


def _make_status(version: str) -> StructType:
    warning = _name_struct(f"{version}.ExpressionWarning", fieldRef=_STRING, warning=_STRING)
    return _name_struct(
        f"{version}.ValidatingAdmissionPolicyStatus",
        observedGeneration=_LONG,
        typeChecking=_name_struct(f"{version}.TypeChecking", expressionWarnings=ArrayType(warning)),
        conditions=ArrayType(_CONDITION),
    )


_INT64 = 2**63
_BEYOND_ASCII = 0x80
_LAYOUT = "2006-01-02T15:04:05Z07:00"
_TIME = (
    ("2006", r"[0-9]{4}"),
    ("-", "-"),
    ("01", r"[0-9]{2}"),
    ("-", "-"),
    ("02", r"[0-9]{2}"),
    ("T", "T"),
    ("15", r"[0-9]{2}"),
    (":", ":"),
    ("04", r"[0-9]{2}"),
    (":", ":"),
    ("05", r"[0-9]{2}([.,][0-9]+)?"),
    ("Z07:00", r"Z|[+-][0-9]{2}:[0-9]{2}"),
)
"""The parts of a time, in Go's notation of layouts."""
_RANGES = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59), "05": ("second", 0, 59)}


class Undecodable(InvalidManifest):
    """A document that the server rejects with 400, before its field errors."""


def decode_manifest(document: JsonObject) -> JsonObject:
    """A manifest as the server decodes it: without unknown fields and nulls. Raises Undecodable for a value of a wrong type."""
    kind, version = as_text(document.get("kind")), as_text(document.get("apiVersion")).rpartition("/")[2]
    type_ = list_types(version)[kind]
    try:
        return _decode_struct(document, type_, "")
    except _Mismatch as error:
        why = f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        raise Undecodable((why,)) from None


def unknown_fields(document: JsonObject) -> tuple[UnknownField, ...]:
    """The fields that the server drops, such as `spec.later` or `spec.variables[0].type`, in the manifest's order."""
    kind, version = as_text(document.get("kind")), as_text(document.get("apiVersion")).rpartition("/")[2]
    return tuple(_find_unknown(document, list_types(version)[kind], ""))


class _Mismatch(Exception):
    """A value that Go cannot decode into a type."""


def _decode_struct(value: JsonObject, struct: StructType, path: str) -> JsonObject:
    fields: dict[str, Json] = {}
    for key, item in value.items():
        if key in struct.fields and item is not None:
            where = f"{path}{struct.embedded.get(key, key)}"
            fields[key] = _decode_value(item, struct.fields[key], struct.bare_name, where)
    return fields


def _decode_value(value: Json, type_: Type, owner: str, path: str) -> Json:
    match type_:
        case AnyType():
            return value
        case ScalarType():
            return _decode_scalar(value, type_, owner, path)
        case TimeType():
            return _decode_time(value, owner, path)
        case LabelsType():
            entries = _expect(value, "object", type_.name, owner, path)
            texts = as_object(entries).items()
            return {key: "" if item is None else _decode_scalar(item, _TEXT, owner, path) for key, item in texts}
        case ArrayType():
            items = as_list(_expect(value, "array", type_.name, owner, path))
            return [
                _make_empty(type_.item) if item is None else _decode_value(item, type_.item, owner, path)
                for item in items
            ]
        case StructType():
            return _decode_struct(as_object(_expect(value, "object", type_.name, owner, path)), type_, f"{path}.")
        case _ as never:
            assert_never(never)


_TEXT = ScalarType("string")


def _decode_scalar(value: Json, scalar: ScalarType, owner: str, path: str) -> Json:
    expected = _expect(value, scalar.takes, scalar.name, owner, path)
    if scalar.takes == "number" and not (isinstance(expected, int) and -_INT64 <= expected < _INT64):
        raise _make_mismatch(f"number {expected}", scalar.name, owner, path)
    return expected


def _decode_time(value: Json, owner: str, path: str) -> Json:
    """Decode a time; Go names the first part that is malformed or out of its range, and compares the day with the month last."""
    text = rest = as_text(_expect(value, "string", "string", owner, path))
    for name, pattern in _TIME:
        match = re.match(pattern, rest)
        if match is None:
            whole, part = _quote(text), _quote(rest)
            raise _Mismatch(f'parsing time {whole} as "{_LAYOUT}": cannot parse {part} as "{name}"')
        rest = rest[match.end() :]
        what, least, most = _RANGES.get(name, ("", 0, 0))
        if what and not least <= int(match[0][:2]) <= most:
            raise _Mismatch(f"parsing time {_quote(text)}: {what} out of range")
    if rest:
        raise _Mismatch(f"parsing time {_quote(text)}: extra text: {_quote(rest)}")
    if not 1 <= int(text[8:10]) <= _count_days(int(text[:4]), int(text[5:7])):
        raise _Mismatch(f"parsing time {_quote(text)}: day out of range")
    return text


def _count_days(year: int, month: int) -> int:
    """The days of a month; the year 0 is a leap year."""
    return monthrange(year or 4, month)[1]


def _quote(text: str) -> str:
    """A text as package `time` quotes it, with escapes for bytes beyond ASCII."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').encode("utf-8", "surrogatepass")
    return '"' + "".join(chr(code) if ord(" ") <= code < _BEYOND_ASCII else f"\\x{code:02x}" for code in escaped) + '"'


def _expect(value: Json, takes: str, name: str, owner: str, path: str) -> Json:
    word = _name_json_type(value)
    if word != takes:
        raise _make_mismatch(word, name, owner, path)
    return value


def _make_mismatch(word: str, name: str, owner: str, path: str) -> _Mismatch:
    return _Mismatch(f"json: cannot unmarshal {word} into Go struct field {owner}.{path} of type {name}")


def _name_json_type(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "object" if as_object(value) is value else "array"


def _make_empty(type_: ScalarType | StructType) -> Json:
    return {} if isinstance(type_, StructType) else ""


def unknown_metadata(document: JsonObject) -> tuple[UnknownField, ...]:
    """The unknown fields of the metadata of an object of any kind."""
    return tuple(_find_unknown(document.get("metadata"), METADATA, "metadata"))


def _find_unknown(value: Json, type_: Type, path: str) -> Iterator[UnknownField]:
    if isinstance(type_, ArrayType):
        for index, item in enumerate(as_list(value)):
            yield from _find_unknown(item, type_.item, f"{path}[{index}]")
    if isinstance(type_, StructType):
        for key, item in as_object(value).items():
            where = f"{path}.{key}" if path else key
            if key in type_.fields:
                yield from _find_unknown(item, type_.fields[key], where)
            else:
                yield make_unknown_field(where, key, type_.fields)

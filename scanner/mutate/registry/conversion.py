"""The changes of a conversion to the server's internal types and back: old forms of fields, and annotations for fields.

Mirrors the hand-written functions of `pkg/apis/*/*/conversion.go`. The object of a request is converted after a pass of
admission has changed it, and when it is stored.
"""

from __future__ import annotations

import base64
import re

from scanner.cel.values.text import quote
from scanner.model.json import JsonObject, as_list, as_object, as_text, dig
from scanner.mutate.autoscalers import METRICS, ROUND_TRIP, convert_to_v1, convert_to_v2
from scanner.mutate.native import RequestFault
from scanner.mutate.schema import Schema
from scanner.mutate.walk import (
    Rule,
    RuleSet,
    apply_to_each,
    apply_when_set,
    apply_within,
    chain_rules,
    drop_members,
    fill_absent,
    set_member,
)

_CORE = "io.k8s.api.core.v1."
_INIT_CONTAINERS = tuple(
    f"pod.{level}.kubernetes.io/init-container{suffix}" for level in ("beta", "alpha") for suffix in ("s", "-statuses")
)
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_COUNTER = "deprecated.daemonset.template.generation"
_ROLLBACK = "deprecated.deployment.rollback.rollbackTo"
_CPU = "targetCPUUtilizationPercentage"
_MOST_DIGITS = 19
_EMPTY_SELECTOR = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
_NONE_SELECTED: JsonObject = {"matchExpressions": [{"key": _EMPTY_SELECTOR, "operator": "Exists"}]}


def convert_round_trip(schema: Schema, document: JsonObject) -> JsonObject:
    """A document of a built-in kind after conversion to its internal type and back."""
    return _ROUND_TRIP.apply(schema, document)


def convert_into(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object of admission, converted into the request's own object, which keeps fields that a conversion does not write.

    `Convert_v1_HorizontalPodAutoscalerSpec_To_autoscaling_HorizontalPodAutoscalerSpec` writes no metrics for none.
    """
    if schema.resolve(schema.root).name != "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler":
        return after
    busy, spec = dig(before, "spec", _CPU), as_object(after.get("spec"))
    has_metrics = any(dig(document, "metadata", "annotations", METRICS) is not None for document in (before, after))
    return (
        after if busy is None or has_metrics or spec.get(_CPU) is not None else {**after, "spec": {**spec, _CPU: busy}}
    )


def reject_unconvertible(document: JsonObject) -> None:
    """Raise RequestFault for a DaemonSet whose counter is not a number (`Convert_v1_DaemonSet_To_apps_DaemonSet`)."""
    counter = dig(document, "metadata", "annotations", _COUNTER)
    if document.get("kind") != "DaemonSet" or not isinstance(counter, str):
        return
    try:
        parse_int(counter)
    except ValueError as error:
        raise RequestFault(
            f"Internal error occurred: failed to convert object: strconv.ParseInt: parsing {quote(counter)}: {error}"
        ) from error


def parse_int(text: str) -> int:
    """The number of 64 bits that a text writes. Raises ValueError with the reason of `strconv.ParseInt`."""
    if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) is None:
        raise ValueError("invalid syntax")
    digits = text.lstrip("+-").lstrip("0") or "0"
    # Python refuses to read thousands of digits.
    number = int(digits) if len(digits) <= _MOST_DIGITS else 2**64
    number = -number if text.startswith("-") else number
    if not -(2**63) <= number < 2**63:
        raise ValueError("value out of range")
    return number


def _apply_to_annotations(rule: Rule) -> Rule:
    return apply_within(
        "metadata", lambda metadata: drop_empty(apply_when_set("annotations", rule)(metadata), "annotations")
    )


def drop_empty(value: JsonObject, name: str) -> JsonObject:
    """The object without a member whose content is empty, the same object if there is none."""
    return drop_members(value, name) if name in value and not value[name] else value


def _make_drop_rule(*names: str) -> Rule:
    return lambda value: drop_members(value, *names)


def _convert_service_account(spec: JsonObject) -> JsonObject:
    """The account of a pod is written under both its names (`Convert_v1_PodSpec_To_core_PodSpec` and back)."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if not account or (spec.get("serviceAccountName") == account and spec.get("serviceAccount") == account):
        return spec
    return {**spec, "serviceAccountName": account, "serviceAccount": account}


def _convert_grace_period(spec: JsonObject) -> JsonObject:
    """A negative grace period becomes one second (`Convert_v1_Pod_To_core_Pod`)."""
    seconds = spec.get("terminationGracePeriodSeconds")
    return {**spec, "terminationGracePeriodSeconds": 1} if isinstance(seconds, int) and seconds < 0 else spec


def _convert_secret_data(secret: JsonObject) -> JsonObject:
    """The members of stringData become data (`Convert_v1_Secret_To_core_Secret`)."""
    if "stringData" not in secret:
        return secret
    texts = as_object(secret["stringData"])
    encoded = {name: base64.b64encode(as_text(text).encode()).decode() for name, text in texts.items()}
    rest = drop_members(secret, "stringData")
    return {**rest, "data": {**as_object(secret.get("data")), **encoded}} if encoded else rest


def _convert_pod_cidr(spec: JsonObject) -> JsonObject:
    """The first range of a node is also a separate field, which prevails (`Convert_v1_NodeSpec_To_core_NodeSpec` and back)."""
    first, ranges = spec.get("podCIDR"), as_list(spec.get("podCIDRs"))
    if first and (not ranges or ranges[0] != first):
        return {**spec, "podCIDRs": [first]}
    return {**spec, "podCIDR": ranges[0]} if ranges and not first else spec


def _convert_claim_kind(claim: JsonObject) -> JsonObject:
    """`Convert_apps_StatefulSetSpec_To_v1_StatefulSetSpec`."""
    if claim.get("apiVersion") == "v1" and claim.get("kind") == "PersistentVolumeClaim":
        return claim
    return {**claim, "apiVersion": "v1", "kind": "PersistentVolumeClaim"}


def _convert_counter(metadata: JsonObject) -> JsonObject:
    """The number of the template is always written (`Convert_apps_DaemonSet_To_v1_DaemonSet`)."""
    annotations = as_object(metadata.get("annotations"))
    return metadata if _COUNTER in annotations else {**metadata, "annotations": {**annotations, _COUNTER: "0"}}


def _convert_rollback(annotations: JsonObject) -> JsonObject:
    """The revision of a rollback is a number; empty means none (`Convert_v1_Deployment_To_apps_Deployment` and back)."""
    revision = as_text(annotations.get(_ROLLBACK))
    if not revision:
        return drop_members(annotations, _ROLLBACK)
    try:
        return set_member(annotations, _ROLLBACK, str(parse_int(revision)))
    except ValueError:
        return annotations


def _convert_first_autoscaler(autoscaler: JsonObject) -> JsonObject:
    """Metrics of v1 that its fields cannot hold are in annotations, which are written anew.

    `Convert_v1_HorizontalPodAutoscaler_To_autoscaling_HorizontalPodAutoscaler` and back.
    """
    rewritten = convert_to_v1(convert_to_v2(autoscaler))
    parts = {name: rewritten[name] for name in ("metadata", "spec") if rewritten[name] or name in autoscaler}
    return autoscaler if all(autoscaler.get(name) == part for name, part in parts.items()) else {**autoscaler, **parts}


def _convert_selector(spec: JsonObject) -> JsonObject:
    """The expression that once selected no pods is dropped beside others (`StripPDBV1beta1Label`)."""
    selector = as_object(spec.get("selector"))
    expressions = as_list(selector.get("matchExpressions"))
    others = [expression for expression in expressions if as_object(expression).get("key") != _EMPTY_SELECTOR]
    if len(others) == len(expressions) or selector == _NONE_SELECTED:
        return spec
    return {**spec, "selector": drop_empty({**selector, "matchExpressions": others}, "matchExpressions")}


def _convert_webhook(conversion: JsonObject) -> JsonObject:
    """A webhook without a client and versions is dropped (`Convert_v1_CustomResourceConversion_To_apiextensions_…` and back)."""
    webhook = as_object(conversion.get("webhook"))
    has_client = webhook.get("clientConfig") is not None or webhook.get("conversionReviewVersions") is not None
    return conversion if has_client else drop_members(conversion, "webhook")


def _convert_items(schema: JsonObject) -> JsonObject:
    """`JSONSchemaPropsOrArray` writes null when both members are empty, and null is read as nil."""
    return drop_members(schema, "items") if schema.get("items", "") is None else schema


_zeros = fill_absent(maxUnavailable=0, maxSurge=0)
_no_init_containers = _apply_to_annotations(_make_drop_rule(*_INIT_CONTAINERS))  # dropInitContainerAnnotations

_ROUND_TRIP = RuleSet(
    {
        f"{_CORE}Pod": chain_rules(_no_init_containers, apply_within("spec", _convert_grace_period)),
        f"{_CORE}PodTemplateSpec": _no_init_containers,
        f"{_CORE}PodSpec": _convert_service_account,
        f"{_CORE}Secret": _convert_secret_data,
        f"{_CORE}NodeSpec": _convert_pod_cidr,
        "io.k8s.api.apps.v1.DaemonSet": apply_within("metadata", _convert_counter),
        "io.k8s.api.apps.v1.Deployment": _apply_to_annotations(_convert_rollback),
        "io.k8s.api.apps.v1.StatefulSetSpec": apply_to_each("volumeClaimTemplates", _convert_claim_kind),
        # The internal types have numbers where these have pointers.
        "io.k8s.api.apps.v1.RollingUpdateDaemonSet": _zeros,
        "io.k8s.api.apps.v1.RollingUpdateDeployment": _zeros,
        "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy": fill_absent(partition=0),
        f"{_EXTENSIONS}CustomResourceConversion": _convert_webhook,
        f"{_EXTENSIONS}JSONSchemaProps": _convert_items,
        "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler": _convert_first_autoscaler,
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler": _apply_to_annotations(_make_drop_rule(*ROUND_TRIP)),
        "io.k8s.api.resource.v1beta1.Device": fill_absent(basic={}),  # Convert_resource_Device_To_v1beta1_Device
        "io.k8s.api.policy.v1.PodDisruptionBudgetSpec": _convert_selector,
    }
)

"""LimitRanger: the requests and limits that LimitRanges give to the containers of a pod, and those that they do not allow.

Source of truth: `plugin/pkg/admission/limitranger` of kube-apiserver 1.36. The defaults of the API are set in the LimitRanges before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.quantity import Quantity, compare, parse
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.release import Minor
from scanner.mutate.defaulting.resources import sum_containers

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_CONTAINERS: Final = (("containers", "container"), ("initContainers", "init container"))
_OF_POD: Final = ("cpu", "memory")
"""The resources that may be set for a pod as a whole."""
_OF_POD_SINCE: Final[Minor] = (1, 34)
_MOST_MILLI: Final = ((1 << 63) - 1) // 1000
_Amounts = Mapping[str, Quantity]


def set_defaults(pod: JsonObject, limit_ranges: Iterable[JsonObject]) -> JsonObject:
    """The pod with the requests and limits that its containers lack. An annotation names those of the last range that added some."""
    for limit_range in limit_ranges:
        defaults = {"limits": _merge(limit_range, "default"), "requests": _merge(limit_range, "defaultRequest")}
        notes: list[str] = []
        spec = dict(as_object(pod.get("spec")))
        for field, noun in _CONTAINERS:
            if as_list(spec.get(field)):
                spec[field] = [_complete(as_object(each), defaults, noun, notes) for each in as_list(spec[field])]
        if notes:
            metadata = as_object(pod.get("metadata"))
            note = {_ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}
            annotations: Json = {**as_object(metadata.get("annotations")), **note}
            pod = {**pod, "metadata": {**metadata, "annotations": annotations}, "spec": spec}
    return pod


def _merge(limit_range: JsonObject, field: str) -> JsonObject:
    """A field of all limits of containers: a later limit has precedence."""
    return {
        name: amount
        for limit in as_list(dig(limit_range, "spec", "limits"))
        if dig(limit, "type") == "Container"
        for name, amount in as_object(dig(limit, field)).items()
    }


def _complete(container: JsonObject, defaults: Mapping[str, JsonObject], noun: str, notes: list[str]) -> JsonObject:
    """A container with the defaults that it lacks; `notes` gets what was added."""
    resources = as_object(container.get("resources"))
    added: dict[str, Json] = {}
    for field in ("requests", "limits"):
        present = as_object(resources.get(field))
        missing = {name: amount for name, amount in defaults[field].items() if name not in present}
        if missing:
            added[field] = {**present, **missing}
            notes.append(
                f"{', '.join(sorted(missing))} {field.removesuffix('s')} for {noun} {as_text(container.get('name'))}"
            )
    return {**container, "resources": {**resources, **added}} if added else container


def find_faults(body: JsonObject, limit_ranges: Iterable[JsonObject], release: Minor) -> Iterator[str]:
    """A message for each LimitRange that does not allow a pod or a claim (of `kind`), with all that it does not allow.

    Raises ValueError for a LimitRange with an amount that is no quantity.
    """
    is_pod = body.get("kind") == "Pod"
    for limit_range in limit_ranges:
        limits = [as_object(limit) for limit in as_list(dig(limit_range, "spec", "limits"))]
        checks = _check_pod(body, limits, release) if is_pod else _check_claim(body, limits)
        faults = list(dict.fromkeys(checks))
        if faults:
            yield faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"


def _check_pod(pod: JsonObject, limits: Iterable[JsonObject], release: Minor) -> Iterator[str]:
    spec = as_object(pod.get("spec"))
    for limit in limits:
        if limit.get("type") == "Container":
            for container in (each for field, _ in _CONTAINERS for each in as_list(spec.get(field))):
                resources = as_object(dig(container, "resources"))
                yield from _check(limit, _Used(_read(resources.get("requests")), _read(resources.get("limits"))))
        elif limit.get("type") == "Pod":
            yield from _check(limit, _Used(*(_read(_sum(spec, field, release)) for field in ("requests", "limits"))))


def _sum(spec: JsonObject, field: str, release: Minor) -> JsonObject:
    """The requests or limits of a pod: those of its containers, or its own."""
    own = as_object(dig(spec, "resources", field)) if release >= _OF_POD_SINCE else {}
    return {**sum_containers(spec, field), **{name: own[name] for name in _OF_POD if name in own}}


def _check_claim(claim: JsonObject, limits: Iterable[JsonObject]) -> Iterator[str]:
    """The storage that a PersistentVolumeClaim requests; it has no limits."""
    requests = _read(dig(claim, "spec", "resources", "requests"))
    for limit in limits:
        if limit.get("type") == "PersistentVolumeClaim":
            for name, enforced in _read(limit.get("min")).items():
                yield from _check_minimum("PersistentVolumeClaim", name, enforced, _Used(requests, {}))
            for name, enforced in _read(limit.get("max")).items():
                bound = f"maximum {name} usage per PersistentVolumeClaim is {enforced}"
                if name not in requests:
                    yield f"{bound}.  No request is specified"
                elif compare(requests[name], enforced) > 0:
                    yield f"{bound}, but request is {requests[name]}"


class _Used(NamedTuple):
    """The requests and limits of a container or a pod."""

    requests: _Amounts
    limits: _Amounts


def _check(limit: JsonObject, used: _Used) -> Iterator[str]:
    """What a limit does not allow, in the order of the names of resources; the API server has no order."""
    of = as_text(limit.get("type"))
    for name, enforced in _read(limit.get("min")).items():
        yield from _check_minimum(of, name, enforced, used)
    for name, enforced in _read(limit.get("max")).items():
        yield from _check_maximum(of, name, enforced, used)
    for name, enforced in _read(limit.get("maxLimitRequestRatio")).items():
        yield from _check_ratio(of, name, enforced, used)


def _check_minimum(of: str, name: str, enforced: Quantity, used: _Used) -> Iterator[str]:
    request, limit = used.requests.get(name), used.limits.get(name)
    bound = f"minimum {name} usage per {of} is {enforced}"
    if request is None:
        yield f"{bound}.  No request is specified"
    elif compare(request, enforced) < 0:
        yield f"{bound}, but request is {request}"
    elif limit is not None and compare(limit, enforced) < 0:
        yield f"{bound}, but limit is {limit}"


def _check_maximum(of: str, name: str, enforced: Quantity, used: _Used) -> Iterator[str]:
    request, limit = used.requests.get(name), used.limits.get(name)
    bound = f"maximum {name} usage per {of} is {enforced}"
    if limit is None:
        yield f"{bound}.  No limit is specified"
    elif compare(limit, enforced) > 0:
        yield f"{bound}, but limit is {limit}"
    elif request is not None and compare(request, enforced) > 0:
        yield f"{bound}, but request is {request}"


def _check_ratio(of: str, name: str, enforced: Quantity, used: _Used) -> Iterator[str]:
    request, limit = used.requests.get(name), used.limits.get(name)
    bound = f"{name} max limit to request ratio per {of} is {enforced}"
    if request is None or not request.unscaled:
        yield f"{bound}, but no request is specified or request is 0"
    elif limit is None or not limit.unscaled:
        yield f"{bound}, but no limit is specified or limit is 0"
    else:
        small = all(_round_up(each, 0) <= _MOST_MILLI for each in (request, limit))
        ratio = _round_up(limit, 3 if small else 0) / _round_up(request, 3 if small else 0)
        if ratio * 1000 > _round_up(enforced, 3):
            yield f"{bound}, but provided ratio is {ratio:.6f}"


def _round_up(quantity: Quantity, digits: int) -> int:
    """The quantity with so many decimal digits, as an integer, rounded away from zero."""
    exponent = quantity.exponent + digits
    if exponent >= 0:
        return int(quantity.unscaled * 10**exponent)
    sign = -1 if quantity.unscaled < 0 else 1
    return int(sign * -(-abs(quantity.unscaled) // 10**-exponent))


def _read(amounts: Json) -> _Amounts:
    """The quantities of a resource list, by name. Raises ValueError for another text."""
    try:
        return {name: parse(str(amount)) for name, amount in sorted(as_object(amounts).items())}
    except EvaluationError as error:
        raise ValueError(f"an amount is no quantity: {error}") from error

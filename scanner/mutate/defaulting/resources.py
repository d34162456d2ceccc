"""Lists of resources: quantities are rounded up to thousandths, and added up over the containers of a pod.

Mirrors `SetDefaults_ResourceList`, and `AggregateContainerRequests` and `AggregateContainerLimits` of component-helpers/resource.
"""

from __future__ import annotations

from collections.abc import Mapping

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.quantity import Quantity, add, compare, parse
from scanner.model.json import Json, JsonObject, as_list, as_object, dig
from scanner.mutate.walk import Rule, set_member

_MILLI = -3
_Amounts = dict[str, Quantity]


def round_resource_lists(*names: str) -> Rule:
    """Round the quantities of some resource lists of an object."""

    def apply(value: JsonObject) -> JsonObject:
        for name in names:
            if value.get(name):
                value = set_member(value, name, _round_list(value[name]))
        return value

    return apply


def _round_list(amounts: Json) -> Json:
    if not isinstance(amounts, Mapping):
        return amounts
    rounded = {name: _round_up(amount) for name, amount in amounts.items()}
    return amounts if all(rounded[name] is amounts[name] for name in amounts) else rounded


def _round_up(amount: Json) -> Json:
    """A quantity rounded up to thousandths; unchanged when it needs no rounding, or when it is not a quantity."""
    if not isinstance(amount, str) or (amount.isalnum() and amount[-1:] not in "nu"):
        return amount
    try:
        exact = parse(amount)
    except EvaluationError:
        return amount
    if exact.exponent >= _MILLI:
        return amount
    scale = 10 ** (_MILLI - exact.exponent)
    sign = -1 if exact.unscaled < 0 else 1
    milli = Quantity(sign * -(-abs(exact.unscaled) // scale), _MILLI, small=True)
    if milli.unscaled * scale == exact.unscaled:
        return amount
    milli.style = exact.style
    return str(milli)


def sum_containers(spec: JsonObject, which: str) -> dict[str, str]:
    """The requests or limits (`which`) of all containers of a pod at one time, as quantities by resource.

    They are the sum of the containers, or more while an init container runs (`PodRequests` and `PodLimits`).
    """
    total: _Amounts = {}
    for container in as_list(spec.get("containers")):
        _add(total, _read_amounts(container, which))
    sidecars: _Amounts = {}
    initializing: _Amounts = {}
    for container in as_list(spec.get("initContainers")):
        init_total = _read_amounts(container, which)
        if dig(container, "restartPolicy") == "Always":
            _add(total, init_total)
            _add(sidecars, init_total)
            init_total = sidecars
        else:
            _add(init_total, sidecars)
        _raise_to(initializing, init_total)
    _raise_to(total, initializing)
    return {name: str(amount) for name, amount in total.items()}


def _read_amounts(container: Json, which: str) -> _Amounts:
    quantities = {}
    for name, amount in as_object(dig(container, "resources", which)).items():
        try:
            quantities[name] = parse(str(amount))
        except EvaluationError:
            continue
    return quantities


def _add(total: _Amounts, amounts: _Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = add(total[name], amount) if name in total else amount


def _raise_to(total: _Amounts, amounts: _Amounts) -> None:
    for name, amount in amounts.items():
        if name not in total or compare(amount, total[name]) > 0:
            total[name] = amount


def find_missing(amounts: Json, *sources: JsonObject) -> JsonObject:
    """The resources that sources have and a resource list lacks; the first source that has a resource has precedence."""
    present = as_object(amounts)
    missing: dict[str, Json] = {}
    for source in sources:
        missing |= {name: amount for name, amount in source.items() if name not in present and name not in missing}
    return missing

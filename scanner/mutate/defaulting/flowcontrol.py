"""Defaults of API priority and fairness: `pkg/apis/flowcontrol/*/defaults.go`."""

from __future__ import annotations

from scanner.model.json import JsonObject, dig
from scanner.mutate.defaulting.rules import when_absent, when_zero
from scanner.mutate.walk import Rules, where, within

_V1 = "io.k8s.api.flowcontrol.v1."
_BETA = "io.k8s.api.flowcontrol.v1beta3."
_ZERO_SHARES = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_SHARES = 30

_queuing = when_zero(handSize=8, queues=64, queueLengthLimit=50)
_exempt = when_absent(nominalConcurrencyShares=0, lendablePercent=0)
_schema = when_zero(matchingPrecedence=1000)


def _beta_shares(level: JsonObject) -> JsonObject:
    """Keep zero shares where an annotation marks them as intended (`SetDefaults_PriorityLevelConfiguration`)."""
    if dig(level, "metadata", "annotations", _ZERO_SHARES) is not None:
        return level
    return within("spec", where("limited", when_zero(nominalConcurrencyShares=_SHARES)))(level)


RULES: Rules = {
    f"{_V1}FlowSchemaSpec": _schema,
    f"{_V1}LimitedPriorityLevelConfiguration": when_absent(nominalConcurrencyShares=_SHARES, lendablePercent=0),
    f"{_V1}ExemptPriorityLevelConfiguration": _exempt,
    f"{_V1}QueuingConfiguration": _queuing,
    f"{_BETA}FlowSchemaSpec": _schema,
    f"{_BETA}PriorityLevelConfiguration": _beta_shares,
    f"{_BETA}LimitedPriorityLevelConfiguration": when_absent(lendablePercent=0),
    f"{_BETA}ExemptPriorityLevelConfiguration": _exempt,
    f"{_BETA}QueuingConfiguration": _queuing,
}

"""The number of stored objects of each resource, from the metrics of the API server.

Source of truth: k8s.io/apiserver/pkg/storage/etcd3/metrics. Releases since 1.34 have `apiserver_resource_objects` with the labels `group` and
`resource`, releases since 1.21 `apiserver_storage_objects` with the label `resource`. The server counts the keys in etcd once a minute;
-1 stands for a count that failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from scanner.cluster.session import Session, Unanswered
from scanner.errors import ClusterError
from scanner.model.object_counts import ServerCounts
from scanner.rbac import METRICS

_OK: Final = 200
_FORBIDDEN: Final = 403
_BY_GROUP: Final = re.compile(
    rb'^apiserver_resource_objects\{group="([^"\\\n]*)",resource="([^"\\\n]+)"\} (\S+)', re.MULTILINE
)
_BY_NAME: Final = re.compile(rb'^apiserver_storage_objects\{resource="([^"\\\n]+)"\} (\S+)', re.MULTILINE)


def object_counts(session: Session, username: Callable[[], str]) -> ServerCounts:
    """The counts of a server, or the reason why there are none; `username` names the user in a message about a missing right."""
    try:
        answer = session.get(METRICS, accept="text/plain", attempts=1)
    except (Unanswered, ClusterError) as error:
        return ServerCounts(why_not=f"cannot read {METRICS}: {error}")
    if answer.status == _FORBIDDEN:
        grant = f"Grant `get` on the non-resource URL {METRICS}"
        return ServerCounts(why_not=f"cannot read {METRICS}: forbidden for {username()}. {grant}")
    if answer.status != _OK:
        return ServerCounts(why_not=f"cannot read {METRICS}: the server answered {answer.status}")
    counts = counts_in(answer.data)
    return ServerCounts(counts, "" if counts else f"{METRICS} has no counts of objects")


def counts_in(metrics: bytes) -> dict[str, int]:
    """The counts in metrics in the text format of Prometheus, by resource, such as `pods` or `deployments.apps`."""
    named = [(resource, value) for resource, value in _BY_NAME.findall(metrics)]
    grouped = [
        (resource + b"." + group if group else resource, value) for group, resource, value in _BY_GROUP.findall(metrics)
    ]
    counts = {resource.decode(errors="replace"): _count(value) for resource, value in (*named, *grouped)}
    return {resource: count for resource, count in counts.items() if count >= 0}


def _count(value: bytes) -> int:
    """A count, which may be written as `1e+06`; -1 if it is not known."""
    try:
        return int(float(value))
    except (ValueError, OverflowError):
        return -1

"""kube-controller-manager beside an API server, with the controllers that a CronJob and its pods need."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scanner.model.json import as_list, dig
from tests.integration.apiserver import SECONDS_TO_READY, ApiServer
from tests.integration.processes import NotStartedError, Server, serving

PROGRAM = "kube-controller-manager"
CONTROLLERS = (
    "cronjob-controller",
    "job-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "ttl-after-finished-controller",
)


OF_DEPLOYMENTS = ("deployment-controller", "replicaset-controller")
"""The controllers that make pods of Deployments; with them, those of the example cluster have pods, too."""


@contextmanager
def running_controllers(
    assets: Path, server: ApiServer, more: Sequence[str] = (), flags: Sequence[str] = ()
) -> Iterator[Server]:
    """Start the controllers, and `more`, and wait until they have made the first objects; the process ends with the block.

    `flags` are added to the command line.

    Raises NotStartedError, with the end of the log, when the controllers do not work in time.
    """
    command: list[str | Path] = [
        assets / PROGRAM,
        f"--kubeconfig={server.kubeconfig}",
        f"--root-ca-file={server.ca}",
        f"--controllers={','.join([*CONTROLLERS, *more])}",
        "--leader-elect=false",
        "--secure-port=0",
        *flags,
    ]
    if not (assets / PROGRAM).is_file():
        raise NotStartedError(
            f"{assets / PROGRAM} is missing: KUBEBUILDER_ASSETS must name the directory that holds it"
        )
    with serving(command, server.directory / f"{PROGRAM}.log") as controllers:
        _wait_for_work(server, controllers)
        yield controllers


def _wait_for_work(server: ApiServer, controllers: Server) -> None:
    """Return when the namespace `default` has its service account and the certificate for tokens."""
    deadline = time.monotonic() + SECONDS_TO_READY
    while time.monotonic() < deadline:
        controllers.reject_ended()
        made = [
            len(as_list(dig(server.request("GET", f"/api/v1/namespaces/default/{plural}").body, "items")))
            for plural in ("serviceaccounts", "configmaps")
        ]
        if all(made):
            return
        time.sleep(0.1)
    raise controllers.trouble(f"did not work within {SECONDS_TO_READY:.0f} s")

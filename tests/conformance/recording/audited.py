"""A server with an audit log, and requests that some of its policies match and no others.

The log holds the whole text of a failure, but one failure of a request only; warnings hold all failures, without their
indexes, and the server cuts them when they are long (k8s.io/apiserver/pkg/admission/plugin/policy/validating,
dispatcher.go). A policy is therefore stored with one validation at a time, and with a condition on the field manager,
which a request may name freely.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from urllib3.exceptions import ProtocolError

from tests.integration.apiserver import ApiServer, running
from tests.integration.client import Answer
from tests.integration.manifests import RefusedError, collection_path

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
BINDING = "ValidatingAdmissionPolicyBinding"
_FAILURES = "validation.policy.admission.k8s.io/validation_failure"
_AUDITED = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "verbs": ["create"]}, {"level": "None"}],
}
_SERVERS = ("managedFields", "resourceVersion")
_CREATED = "2026-01-01T00:00:00Z"
_SECONDS = 30.0
_PAUSE = 0.001


@dataclass(slots=True)
class AuditLog:
    """The failures that the server reported, by the number that it gives to a request."""

    path: Path
    reports: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    offset: int = 0

    def failures(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the failures of a request: `policy`, `binding`, `expressionIndex` and `message` of each."""
        number = answer.headers["Audit-Id"]
        deadline = time.monotonic() + _SECONDS
        while number not in self.reports:
            if time.monotonic() > deadline:
                raise RefusedError(f"request {number} is not in the audit log after {_SECONDS:.0f} s", answer)
            self._read()
            time.sleep(_PAUSE)
        return self.reports[number]

    def _read(self) -> None:
        """Read the new lines of the log; an incomplete last line is left for the next read."""
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            lines = [line for line in stream if line.endswith(b"\n")]
        self.offset += sum(map(len, lines))
        for event in map(json.loads, lines):
            self.reports[event["auditID"]] = json.loads(event.get("annotations", {}).get(_FAILURES, "[]"))


@dataclass(frozen=True, slots=True)
class AuditedServer:
    """A running server with its audit log."""

    server: ApiServer
    log: AuditLog
    paths: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def create(self, document: Mapping[str, Any], group: str = "none") -> Answer:
        """Return the answer to a dry-run create that the policies of a group match."""
        params = {"dryRun": "All", "fieldValidation": "Ignore", "fieldManager": group}
        return self.server.request("POST", self._path(document), dict(document), params)

    def _path(self, document: Mapping[str, Any]) -> str:
        """Return the path at which an object is created; discovery is read once for each kind and namespace."""
        key = document["apiVersion"], document["kind"], document["metadata"].get("namespace", "")
        if key not in self.paths:
            self.paths[key] = collection_path(self.server, dict(document))
        return self.paths[key]

    def create_policy(self, policy: Mapping[str, Any], *, dry_run: bool) -> tuple[int, Any]:
        """Return status and body of the answer to the create of a policy; status 0 when the server crashed and closed the connection."""
        params = {"dryRun": "All"} if dry_run else {}
        path = f"{ADMISSION}/validatingadmissionpolicies"
        try:
            answer = self.server.request("POST", path, dict(policy), params)
        except ProtocolError:
            return 0, None
        return answer.status, answer.body

    def failure(self, document: Mapping[str, Any], group: str) -> str | None:
        """Return the message of the only policy of a group about a dry-run create; None when it reports nothing."""
        reported = self.log.failures(self.create(document, group))
        return reported[0]["message"] if reported else None


@contextmanager
def audited(assets: Path, directory: Path) -> Iterator[AuditedServer]:
    """Run a server with an audit log, for as long as the block lasts."""
    policy, log = directory / "audit-policy.json", directory / "audit.log"
    policy.write_text(json.dumps(_AUDITED))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
    with running(assets, directory, flags=flags) as server:
        yield AuditedServer(server, AuditLog(log))


def as_admitted(answer: Answer, number: int) -> dict[str, Any]:
    """Return an object in the state at admission, with a uid and a time that are the same in every recording."""
    body: Any = answer.body
    body = json.loads(json.dumps(body).replace(body["metadata"]["creationTimestamp"], _CREATED))
    metadata = {key: value for key, value in body["metadata"].items() if key not in _SERVERS}
    return {**body, "metadata": {**metadata, "uid": f"00000000-0000-4000-8000-{number:012}"}}


def of_group(policy: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return the same policy for the requests of a group only."""
    condition = f"has(request.options.fieldManager) && request.options.fieldManager == '{group}'"
    conditions = [{"name": "recorded", "expression": condition}, *policy["spec"].get("matchConditions", [])]
    return {**policy, "spec": {**policy["spec"], "matchConditions": conditions}}

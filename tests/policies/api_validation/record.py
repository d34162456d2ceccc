"""Record the responses of a kube-apiserver: `python -m tests.policies.api_validation.record` writes `refusals.json`.

The server stores nothing: the requests are dry runs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.integration.apiserver import running
from tests.policies.api_validation.refused import cases
from tests.requirements import API_SERVER

HERE = Path(__file__).parent
PATHS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


def main() -> None:
    """Record the message of each refusal; an empty text means that the server would store the manifest."""
    assets = API_SERVER.place()
    if not assets:
        sys.exit("KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd")
    messages: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, running(Path(assets), Path(folder)) as server:
        for name, document in cases():
            path = f"/apis/admissionregistration.k8s.io/v1/{PATHS[document['kind']]}"
            answer = server.request("POST", path, document, {"dryRun": "All"})
            body: Any = answer.body
            messages[name] = "" if answer.status < 300 else body["message"]
    (HERE / "refusals.json").write_text(json.dumps(messages, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()

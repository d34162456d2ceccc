"""Records verdicts of the API server of the integration tests, about policies and objects of our own, into `tests/conformance/recorded`.

Run it as `KUBEBUILDER_ASSETS="$(make -s apiserver)" python -m scripts.record_verdicts [NAME …]`; the same seed gives the same cases.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.conformance.cases import RECORDED
from tests.conformance.recording import expressions, pod_security, policies, refused
from tests.conformance.recording.audited import audited

SEED = 20261122
Serving = Callable[[Path, Path], AbstractContextManager[Any]]
RECORDERS: dict[str, tuple[Serving, Callable[[Any, int, int], Any], int]] = {
    "expressions": (audited, expressions.record, 700),
    "rejected-expressions": (audited, refused.record, 600),
    "policies": (audited, policies.record, 400),
    "pod-security": (pod_security.served, pod_security.record, 300),
}
"""The server and the recorder of each file, and the number of its cases or objects."""


def main() -> None:
    """Record the files that are named, or all; each with a server of its own."""
    parser = argparse.ArgumentParser(prog="python -m scripts.record_verdicts", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(RECORDERS))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--into", type=Path, default=RECORDED)
    arguments = parser.parse_args()
    for name in arguments.names:
        serving, recorder, number = RECORDERS[name]
        with tempfile.TemporaryDirectory() as directory, serving(_assets(), Path(directory)) as server:
            write(arguments.into / f"{name}.json.gz", recorder(server, arguments.seed, number))


def write(path: Path, data: Any) -> None:
    """Write a file whose bytes depend on the data alone, and print its size."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{path.name}: {len(data if isinstance(data, list) else data['cases'])} cases, {path.stat().st_size:,} bytes")


def _assets() -> Path:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder:
        raise SystemExit('KUBEBUILDER_ASSETS is not set: export KUBEBUILDER_ASSETS="$(make -s apiserver)"')
    return Path(folder)


if __name__ == "__main__":
    main()

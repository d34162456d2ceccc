"""Cases that servers of 1.30 to 1.36 answered differently from each other, or from Assay once: each on each of them.

Literals of protobuf's messages, which no release treats differently, have tests of their own.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests import server_words
from tests.conformance.cases import folder, load

FOLDER = Path(os.environ.get("ASSAY_DIFFERENCES", folder().parent / "differences")) / "by-version"
NODE = re.compile(r"(already exists for expression: ).*?(\(\d+\) old:)")
"""Go's text of a node holds an address in memory, or spaces that change from build to build."""
DIFFERENT = {
    ("result-variable-3", "1.30"): "the parser of 1.30 uses one node three times, and complains of its types",
}
"""The cases whose words differ, each with its reason: the verdict is the server's."""
CASES = [
    pytest.param(name, version, case, id=f"{name}-{version}")
    for path in sorted(FOLDER.glob("all-*.json.gz"))
    for version in [path.name.removeprefix("all-").removesuffix(".json.gz")]
    for name, case in load(path).items()
    if not name.startswith("protobuf-")
] or [pytest.param("", "", {}, marks=pytest.mark.skip(f"no cases in {FOLDER}; name its parent with ASSAY_DIFFERENCES"))]


@pytest.mark.parametrize(("name", "version", "case"), CASES)
def test_a_policy_may_be_created_as_on_the_server(name: str, version: str, case: dict[str, Any]) -> None:
    """A policy is accepted, or refused with the server's words, by the rules of its release."""
    expected = server_words.refusal_of_policy(case["server"]["newPolicy"])

    assert _plain(expected, name, version) == _plain(
        server_words.about_creation(case["policy"], version), name, version
    )


@pytest.mark.parametrize(("name", "version", "case"), CASES)
def test_a_stored_policy_decides_as_on_the_server(name: str, version: str, case: dict[str, Any]) -> None:
    """A stored policy allows the object, or denies it with the server's words."""
    expected = case["server"]["stored policy, CREATE"]
    actual = server_words.about_object(case["policy"], case["binding"], case["object"], version)

    assert _plain(expected, name, version) == _plain(actual, name, version)


def _plain(text: str, name: str, version: str) -> str:
    if (name, version) in DIFFERENT:
        return text.partition("\n")[0]
    return server_words.until_syntax_error(NODE.sub(r"\1\2", text))

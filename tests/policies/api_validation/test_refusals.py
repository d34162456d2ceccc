"""The errors for policies and bindings that the API would not store: the same text and the same order as the server's.

Of an error of CEL syntax the place is the server's, and the words are Assay's own.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanner.errors import InvalidManifest
from scanner.policies.api_validation import Undecodable
from scanner.policies.validating.language import read_binding, read_policy
from tests.documents import Document, binding, policy
from tests.policies.api_validation.refused import cases
from tests.server_words import until_syntax_error

REFUSALS: dict[str, str] = json.loads((Path(__file__).parent / "refusals.json").read_text("utf-8"))


def refusal(document: Document) -> str:
    """The text with which Assay refuses a manifest, in the server's form; empty if Assay accepts the manifest."""
    name = document.get("metadata", {}).get("name", "")
    try:
        if document["kind"] == "ValidatingAdmissionPolicy":
            read_policy(document, source="f.yaml", rules=(1, 36))
        else:
            read_binding(document, source="f.yaml")
    except Undecodable as error:
        return str(error)
    except InvalidManifest as error:
        return f'{document["kind"]}.admissionregistration.k8s.io "{name}" is invalid: {error}'
    return ""


def test_every_case_was_recorded() -> None:
    """`refusals.json` has every case: `python -m tests.policies.api_validation.record` writes it."""
    names = [name for name, _ in cases()]
    assert names == list(REFUSALS)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("name", "document"), [pytest.param(*case, id=case[0]) for case in cases()])
def test_refusals_are_the_servers(name: str, document: Document) -> None:
    """Assay gives the message of kube-apiserver 1.36; an empty text means that the server would store the manifest."""
    assert until_syntax_error(REFUSALS[name]) == until_syntax_error(refusal(document))


@pytest.mark.parametrize("document", [policy("p", "true"), binding("b", "p")])
def test_a_manifest_without_a_name_is_refused(document: Document) -> None:
    """A file has no generateName from which a server would make a name."""
    assert "metadata.name: Required value: name or generateName is required" in refusal(document | {"metadata": {}})


@pytest.mark.parametrize("spec", [None, 3, [], {"validations": 3}, {"matchConstraints": []}, {"paramKind": "x"}])
def test_what_is_no_manifest_at_all_is_refused(spec: object) -> None:
    """Any other value is refused with a message."""
    assert refusal(policy("p", "true") | {"spec": spec})
    assert refusal(binding("b", "p") | {"spec": spec})

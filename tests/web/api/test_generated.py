"""Generated requests, valid and invalid ones, against the OpenAPI document."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.openapi import from_asgi

from scanner.web.api.endpoints import Endpoint
from scanner.web.api.queries import Query
from scanner.web.api.routes import ENDPOINTS
from tests.web.api.asking import ROOT, Api

pytestmark = pytest.mark.long

EXAMPLES = int(os.environ.get("API_EXAMPLES", "8"))
_TOO_LONG, _FAILED = 414, 500
_OPAQUE = ("after", "at", "since", "text")
"""A cursor and a date can be invalid although they have the form of one, and a text can have too many words."""


@pytest.fixture(scope="session")
def described(history: Api) -> dict[str, Any]:
    """The operations of the document, by path."""
    schema = from_asgi(f"{ROOT}/openapi.json", history.site.client.app)
    operations = [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]
    return {operation.path: operation for operation in operations}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=[endpoint.name for endpoint in ENDPOINTS])
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_generated_requests_are_answered_as_described(
    history: Api, described: dict[str, Any], endpoint: Endpoint[Any], mode: GenerationMode, data: st.DataObject
) -> None:
    """Status, headers and body are those of the document: an invalid request is refused, and none is a failure."""
    has_query = endpoint.query is not Query
    known = {"path_parameters": {"cluster": history.key}} if has_query and endpoint.path.count("{") == 1 else {}
    case = data.draw(described[endpoint.path].as_strategy(mode, **known))
    if mode is GenerationMode.POSITIVE:
        case.query = {name: value for name, value in case.query.items() if name not in _OPAQUE}
    answer = case.call()
    assert answer.status_code < _FAILED, answer.text
    if answer.status_code != _TOO_LONG:  # the library does not know this refusal
        case.validate_response(answer)

"""Requests to the API, and answers that are checked against its OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlencode

from jsonschema import Draft202012Validator

from scanner.model.scans.scan import Scan
from scanner.report.document.document import Document
from scanner.web.requests.addresses import ScanMoment
from tests.web.served import Got, Served

ROOT: Final = "/api/v1"
OK: Final = 200
Answer = dict[str, Any]
LISTS: Final = {
    "/clusters": "clusters",
    "/clusters/{cluster}/scans": "scans",
    "/clusters/{cluster}/gaps": "gaps",
    "/clusters/{cluster}/policies": "policies",
    "/clusters/{cluster}/namespaces": "namespaces",
    "/clusters/{cluster}/problems": "problems",
    "/clusters/{cluster}/findings": "findings",
    "/clusters/{cluster}/population": "objects",
    "/clusters/{cluster}/trend": "days",
    "/runs": "runs",
}
"""The paths of the lists, and the fields that have their items."""


@dataclass(frozen=True)
class Api:
    """The API of an application."""

    site: Served

    @cached_property
    def document(self) -> Answer:
        """The OpenAPI document."""
        read: Answer = json.loads(self.site.get(f"{ROOT}/openapi.json").text)
        return read

    @property
    def key(self) -> str:
        """The key of the first cluster."""
        return self.site.cluster.rpartition("/")[2]

    @cached_property
    def scan(self) -> Scan:
        """The newest scan of the first cluster."""
        return self.site.library.scan(self.site.library.clusters()[0], ScanMoment())

    @property
    def report(self) -> Document:
        """The report of that scan."""
        return self.site.library.view(self.scan).document

    def get(self, path: str, /, *, of: Mapping[str, str] | None = None, **query: Any) -> Got:
        """Request a path of the table of endpoints; `of` has its variable parts besides the first cluster."""
        address = f"{ROOT}{path}".format(**{"cluster": self.key, **(of or {})})
        return self.site.get(f"{address}?{urlencode(query, doseq=True)}" if query else address)

    def answer(self, path: str, /, *, of: Mapping[str, str] | None = None, **query: Any) -> Answer:
        """The answer to a request, which must be valid by the OpenAPI document."""
        got = self.get(path, of=of, **query)
        assert (OK, "") == (got.status, "" if got.status == OK else got.text)
        read: Answer = json.loads(got.text)
        self.validator(path).validate(read)
        return read

    def validator(self, path: str) -> Draft202012Validator:
        """The validator of the answers of a path."""
        content = self.document["paths"][path]["get"]["responses"]["200"]["content"]
        schema = {**content["application/json"]["schema"], "components": self.document["components"]}
        return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)

    def pages(self, path: str, /, **query: Any) -> Iterator[Answer]:
        """The pages of a list, one after the other."""
        page = self.answer(path, **query)
        yield page
        while page["next"]:
            page = self.answer(path, **{**query, "after": page["next"]})
            yield page

    def items(self, path: str, /, **query: Any) -> list[Answer]:
        """All items of a list."""
        return [item for page in self.pages(path, **query) for item in page[LISTS[path]]]

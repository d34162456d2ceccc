"""Manifests in files are taken and refused as kube-apiserver 1.36 takes and refuses them, in its words.

A seeded part of all cases is compared; REFUSALS chooses another number of them, or `all`, and RANDOM_SEED others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest

from scanner.model.json import as_text, dig
from tests.integration.apiserver import ApiServer
from tests.integration.refusals import GROUP, PLURALS, Case, Reading, cases, has_generated_name, ignored_by, reading

SEED = int(os.environ.get("RANDOM_SEED", "20261122"))
NUMBER = os.environ.get("REFUSALS", "600")
TEXTS = 0.99
"""The share of refusals that have to be word for word the server's."""


def _chosen() -> list[Case]:
    every = list(cases())
    return every if NUMBER == "all" else Random(SEED).sample(every, int(NUMBER))


def _server_reading(server: ApiServer, case: Case) -> Reading:
    """The server's result of creating an object, which a dry run does not store."""
    kind, version = as_text(case.document["kind"]), as_text(case.document["apiVersion"]).rpartition("/")[2]
    answer = server.request("POST", f"/apis/{GROUP}/{version}/{PLURALS[kind]}", case.document, {"dryRun": "All"})
    if answer.status < 300:
        return Reading("", ignored_by(answer.warnings()))
    return Reading(as_text(dig(answer.body, "message")))


@pytest.fixture(scope="module")
def compared(api_server: ApiServer) -> list[tuple[str, Reading, Reading]]:
    """Each case with the server's answer and Assay's; names that are made up have no counterpart in files."""
    named = [case for case in _chosen() if not has_generated_name(case.document)]
    return [(case.where, _server_reading(api_server, case), reading(case.document)) for case in named]


def _different(compared: list[tuple[str, Reading, Reading]]) -> Iterator[str]:
    for where, server, assay in compared:
        if server != assay:
            yield f"{where}\n  server: {server}\n  Assay:  {assay}"


def test_every_manifest_is_taken_or_refused_as_by_the_server(compared: list[tuple[str, Reading, Reading]]) -> None:
    """Without an exception, and with the same fields ignored."""
    wrong = [
        row for row in compared if (bool(row[1].refusal), row[1].ignored) != (bool(row[2].refusal), row[2].ignored)
    ]
    assert [] == list(_different(wrong))


def test_refusals_are_in_the_servers_words(compared: list[tuple[str, Reading, Reading]]) -> None:
    """All but a few."""
    refused = [row for row in compared if row[1].refusal and row[2].refusal]
    different = list(_different(refused))
    assert len(different) <= (1 - TEXTS) * len(refused), "\n".join(different)


def test_the_cases_are_many_and_of_both_kinds(compared: list[tuple[str, Reading, Reading]]) -> None:
    """Between a tenth and a half of the compared cases are accepted."""
    taken = sum(not server.refusal for _, server, _ in compared)
    assert len(compared) * 0.1 < taken < len(compared) * 0.5

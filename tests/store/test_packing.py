"""The bytes that stage a page follow from its findings, not from how they are in memory."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from scanner.model.outcome import Evidence, Reason
from scanner.store.history.staged_pages import pack
from tests.store.made import finding, page_of

EVIDENCE = Evidence((Reason("object.spec.replicas", "60", "spec.replicas"),), excerpt='spec: {"replicas": 60}')


def test_shared_parts_are_packed_like_copies() -> None:
    """Findings that share their check and evidence give the same bytes as findings that have equal ones."""
    shared = tuple(
        finding(name, policy=policy, evidence=EVIDENCE) for name in ("a", "b") for policy in ("replicas", "limits")
    )
    assert pack(page_of(shared, "apps/v1", "Deployment")) == pack(page_of(deepcopy(shared), "apps/v1", "Deployment"))


def test_an_excerpt_alone_makes_other_evidence() -> None:
    """Findings with the same reasons keep their own excerpts."""
    other = replace(EVIDENCE, excerpt='spec: {"replicas": 60, "paused": true}')
    findings = (finding("a", evidence=EVIDENCE), finding("b", evidence=other))
    packed = pack(page_of(findings, "apps/v1", "Deployment"))
    assert packed != pack(page_of((findings[0], finding("b", evidence=EVIDENCE)), "apps/v1", "Deployment"))

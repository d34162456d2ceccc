"""The conversion between the served versions of a kind, and mutations in another version, as a real API server does both."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

from scanner.api import UserInfo
from scanner.model.json import JsonObject, as_object
from scanner.model.resource import Kind
from scanner.mutate.versions import convert
from scanner.policies.plan import group_families
from tests.integration.fuzz.case import Case
from tests.integration.fuzz.compare import compared, outcome_of
from tests.integration.fuzz.manifests import binding_named, policy_named
from tests.integration.fuzz.ours import predicted
from tests.integration.fuzz.stage import GROUPS, Stage, Stored, staged, where_of
from tests.integration.fuzz.versions import named

GROUP = "admissionregistration.k8s.io"
MUTATIONS = (
    "Object{}",
    'Object{metadata: Object.metadata{labels: {"x": "y"}}}',
    "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'a': 'b'}}]",
    "[JSONPatch{op: 'test', path: '/metadata/name', value: 'other'}]",
    "[JSONPatch{op: 'remove', path: '/absent'}]",
)


@pytest.fixture(scope="module")
def stage(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server of our own: its policies act on every object."""
    with staged(assets, tmp_path_factory.mktemp("converted")) as started:
        yield started


def several(stage: Stage) -> list[tuple[Kind, ...]]:
    """The kinds that the server serves in several versions, without those that no policy matches."""
    return [family for family in group_families(stage.kinds) if len(family) > 1 and family[0].group != GROUP]


def kind_of(stage: Stage, stored: Stored) -> Kind:
    """The kind of an object."""
    name = (stored.document["apiVersion"], stored.document["kind"])
    return next(kind for kind in stage.kinds if (kind.api_version, kind.kind) == name)


def views(stage: Stage) -> Iterator[tuple[Stored, tuple[Kind, ...]]]:
    """The objects of these kinds, each with all its kinds."""
    for family in several(stage):
        for stored in stage.objects:
            if kind_of(stage, stored) in family:
                yield stage.current(stored), family


def without_managed_fields(document: JsonObject) -> JsonObject:
    """A document without the notes of the server, which name versions."""
    metadata = as_object(document["metadata"])
    return {**document, "metadata": {name: part for name, part in metadata.items() if name != "managedFields"}}


def test_every_kind_of_several_versions_has_an_object(stage: Stage) -> None:
    """A kind that a release serves in another version needs a conversion, and an object here."""
    covered = {family for _, family in views(stage)}

    assert [] == [family[0] for family in several(stage) if family not in covered]


def test_every_pair_of_served_versions_is_converted_as_the_server_does(stage: Stage) -> None:
    """Each object of a built-in kind, from each version to each other one."""
    wrong = []
    for stored, family in views(stage):
        if family[0].group.endswith(".example.com"):
            continue
        by_kind = {kind: without_managed_fields(stage.converted(stored, kind)) for kind in family}
        wrong += [
            (where_of(stored.document), source.api_version, target.api_version)
            for source, target in permutations(family, 2)
            if convert(by_kind[source], target) != by_kind[target]
        ]

    assert [] == wrong


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_mutations_in_every_other_version_do_what_is_predicted(stage: Stage, failure_policy: str) -> None:
    """Each pair of served versions of each kind: a request in one, a rule that names the other one."""
    cases = [
        (stored, case)
        for stored, family in views(stage)
        for kind in family
        if kind != kind_of(stage, stored)
        for case in _cases(
            kind, f"{failure_policy.lower()}-{where_of(stored.document).lower().replace('/', '-')}", failure_policy
        )
    ]
    policies = [policy for _, case in cases for policy in case.policies]
    stage.activate([*policies, *(binding_named(str(as_object(policy["metadata"])["name"])) for policy in policies)])
    wrong = []
    for stored, case in cases:
        theirs = outcome_of(stage.write(stored, "UPDATE", case.user))
        ours = predicted(stage, case, stored.document, "UPDATE")
        comparison = compared(case, where_of(stored.document), "UPDATE", theirs, ours)
        wrong += [] if comparison.same_class and comparison.same_text else [comparison]
    stage.deactivate()

    assert [] == wrong
    assert len(cases) >= 100


def _cases(kind: Kind, prefix: str, failure_policy: str) -> Iterator[Case]:
    for number, mutation in enumerate(MUTATIONS):
        name = f"{prefix}-{kind.version}-{number}"
        policy = policy_named(
            name, (mutation,), user=name, resource=(kind.group, kind.plural), failure_policy=failure_policy
        )
        yield Case((named(policy, kind),), UserInfo(name, groups=GROUPS), mutation, "/metadata")

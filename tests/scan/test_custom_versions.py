"""Policies that name another version of a custom resource: each evaluates the object that a server would show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from scanner.admission.dispatch import CombinedChange
from scanner.api import Auditor
from scanner.cluster.schemas import KnownSchemas, builtin_schemas, read_custom_schemas
from scanner.model.json import as_object, dig
from scanner.model.outcome import WouldChange
from scanner.model.resource import Kind, Page, resource_of
from scanner.mutate.schema import Conversion
from scanner.policies.mutating.together import combine, list_invocations, try_orders
from tests.cluster.test_definitions import definition, version
from tests.documents import KINDS, binding, policy, rule
from tests.scan import test_drift as mutating
from tests.scan.fakes import FakeCluster, Recorded, scanned

NEW = Kind("shop.example", "v2", "Cog", "cogs", namespaced=True)
OLD = replace(NEW, version="v1")
TEXT = {"type": "string"}
SPECS = {
    "v1": {"title": TEXT, "old": TEXT, "colour": {**TEXT, "default": "blue"}},
    "v2": {"title": TEXT, "new": TEXT, "weight": {"type": "integer", "default": 3}},
}
NAMESPACE = mutating.NAMESPACE


def defined(strategy: str = "None") -> dict[str, Any]:
    """Cogs in two versions, each with a field and a default of its own; v1 is stored, and keeps every field."""
    schemas = {
        name: {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
        for name, spec in SPECS.items()
    }
    schemas["v1"]["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = True  # type: ignore[index]
    versions = [version(name, storage=name == "v1", schema=schema) for name, schema in schemas.items()]
    return definition(*versions, conversion={"strategy": strategy})


def cog(name: str, api_version: str, **spec: Any) -> dict[str, Any]:
    """A cog as the list of a version has it."""
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-of-{name}"}
    return {"apiVersion": f"shop.example/{api_version}", "kind": "Cog", "metadata": metadata, "spec": spec}


class Unknown(KnownSchemas):
    """The schemas of a server that does not show its definitions."""

    def conversion(self, kind: Kind) -> Conversion:
        """Always unknown."""
        del kind
        return "unknown"


@dataclass
class Shop(FakeCluster):
    """A server with one cog, which it lists in two versions, each with the fields of this version."""

    definition: dict[str, Any] = field(default_factory=defined)
    shows_definitions: bool = True
    versions: list[str] = field(default_factory=list)

    def schemas(self) -> KnownSchemas:
        known = {**builtin_schemas(), **read_custom_schemas(self.definition)}
        return KnownSchemas(known) if self.shows_definitions else Unknown(known)

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        self.versions += [kind.version] if kind.plural == "cogs" else []
        yield from super().pages(kind, namespace=namespace, selector=selector)


def bound(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The binding of a policy, under its name."""
    name = manifest["metadata"]["name"]
    return binding(name, name) if manifest["kind"].startswith("Validating") else mutating.binding(name)


def shop(*policies: dict[str, Any], **fields: Any) -> Shop:
    """The server with policies, each of which has a binding of its name."""
    bindings = [bound(manifest) for manifest in policies]
    cogs = [cog("a", "v1", title="a", old="o", colour="blue", new="n"), cog("a", "v2", title="a", new="n")]
    kinds = (*KINDS, *mutating.KINDS_OF_POLICIES, NEW, OLD)
    return Shop([*policies, *bindings, *cogs, NAMESPACE], kinds=kinds, **fields)


def telling(name: str, named: str, match_policy: str = "Equivalent", new_of: str = "") -> dict[str, Any]:
    """A policy for a version that reports the object; with `new_of` also for the object of that name in the new version."""
    rules = [rule("cogs", group="shop.example", version=named)]
    if new_of:
        rules.append(rule("cogs", group="shop.example", version="v2", resourceNames=[new_of]))
    constraints = {"resourceRules": rules, "matchPolicy": match_policy}
    told = "object.apiVersion + ' ' + object.spec.map(key, key).sort().join(',') + ' ' + request.kind.version + request.requestKind.version"
    validation = {"expression": "false", "messageExpression": told}
    return policy(name, matchConstraints=constraints, validations=[validation])


def told(recorded: Recorded) -> dict[str, str]:
    """The message of each policy."""
    return {finding.policy: finding.outcome.message for finding in recorded.findings}


OF_NEW, OF_OLD = "new,title,weight", "colour,new,old,title"


@pytest.mark.parametrize(
    ("policies", "expected", "lists"),
    [
        pytest.param([telling("p", "v1")], {"p": f"shop.example/v1 {OF_NEW} v1v2"}, ["v2"], id="equivalent, old"),
        pytest.param([telling("p", "v2")], {"p": f"shop.example/v2 {OF_NEW} v2v2"}, ["v2"], id="equivalent, new"),
        pytest.param([telling("p", "v1", "Exact")], {"p": f"shop.example/v1 {OF_OLD} v1v1"}, ["v1"], id="exact, old"),
        pytest.param([telling("p", "v2", "Exact")], {"p": f"shop.example/v2 {OF_NEW} v2v2"}, ["v2"], id="exact, new"),
        pytest.param([telling("p", "*")], {"p": f"shop.example/v2 {OF_NEW} v2v2"}, ["v2"], id="any version"),
        pytest.param(
            [telling("p", "v1", "Exact", new_of="a")],
            {"p": f"shop.example/v2 {OF_NEW} v2v2"},
            ["v1", "v2"],
            id="exact, new by name",
        ),
        pytest.param(
            [telling("p", "v1", "Exact", new_of="of-another")],
            {"p": f"shop.example/v1 {OF_OLD} v1v1"},
            ["v1", "v2"],
            id="exact, another by name",
        ),
        pytest.param(
            [telling("a", "v1"), telling("b", "v2"), telling("c", "v1", "Exact")],
            {
                "a": f"shop.example/v1 {OF_NEW} v1v2",
                "b": f"shop.example/v2 {OF_NEW} v2v2",
                "c": f"shop.example/v1 {OF_OLD} v1v1",
            },
            ["v1", "v2"],
            id="all together",
        ),
    ],
)
def test_a_policy_reads_the_object_of_the_request_in_the_version_that_it_names(
    policies: list[dict[str, Any]], expected: dict[str, str], lists: list[str]
) -> None:
    """With Equivalent, fields and defaults are those of the version of the request, and only the apiVersion is another."""
    cluster = shop(*policies)
    recorded = scanned(cluster)

    assert (expected, lists, ()) == (told(recorded), sorted(cluster.versions), recorded.gaps)


def test_the_defaults_of_the_request_are_there_without_the_right_to_read_definitions() -> None:
    """The OpenAPI document has them; the stored version is not needed for this."""
    assert {"p": f"shop.example/v2 {OF_NEW} v2v2"} == told(scanned(shop(telling("p", "v2"), shows_definitions=False)))


def test_no_server_sets_the_defaults_of_files() -> None:
    """As the report of such a scan says."""
    assert {"p": "shop.example/v2 new,title v2v2"} == told(scanned(shop(telling("p", "v2"), source="files")))


def test_a_webhook_converts_the_list_of_the_version() -> None:
    """Only the server can ask the webhook, and it does so for its list."""
    cluster = shop(telling("p", "v1"), definition=defined("Webhook"))
    recorded = scanned(cluster)

    assert ({"p": f"shop.example/v1 {OF_OLD} v1v2"}, ["v1"]) == (told(recorded), cluster.versions)


def test_a_conversion_that_cannot_be_read_is_a_gap_of_the_policy() -> None:
    """Other policies are evaluated; the gap names the definition and the remedy."""
    cluster = shop(telling("other", "v1"), telling("own", "v2"), shows_definitions=False)
    recorded = scanned(cluster)

    assert ["own"] == list(told(recorded))
    assert (
        "it reads cogs.shop.example in version v1, and their CustomResourceDefinition, which tells how the server converts them, "
        "cannot be read: grant get on customresourcedefinitions/cogs.shop.example"
    ) == "".join(gap.why for gap in recorded.gaps)


def test_a_policy_for_the_version_of_the_request_needs_no_definition() -> None:
    """No right on definitions is needed."""
    assert () == scanned(shop(telling("p", "v2"), telling("q", "*"), shows_definitions=False)).gaps


def test_a_finding_names_the_version_of_its_list() -> None:
    """The object is counted there, too."""
    recorded = scanned(shop(telling("p", "v1")))

    assert ["shop.example/v2"] == [finding.api_version for finding in recorded.findings]
    assert {"shop.example/v2"} == {key.api_version for key in recorded.tallies}
    assert 1 == recorded.coverage("Cog", "shop.example/v2").evaluated


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_evaluate_other_versions_as_well(workers: int) -> None:
    """The conversions are known before they are forked."""
    assert {"p": f"shop.example/v1 {OF_NEW} v1v2"} == told(scanned(shop(telling("p", "v1")), workers=workers))


def changing(name: str, named: str, mutation: str, **spec: Any) -> dict[str, Any]:
    """A mutating policy for a version of cogs."""
    rules = [{**rule("cogs", group="shop.example", version=named), "operations": ["UPDATE"]}]
    return mutating.policy(name, mutation, matchConstraints={"resourceRules": rules}, **spec)


def labels(text: str) -> str:
    """A JSON patch of the labels."""
    return f"[JSONPatch{{op: 'add', path: '/metadata/labels', value: {{{text}: 'x'}}}}]"


def acting(*policies: dict[str, Any]) -> list[Any]:
    """The invocations of the policies in one request in v2."""
    auditor = Auditor(
        policies=policies,
        bindings=[mutating.binding(manifest["metadata"]["name"]) for manifest in policies],
        kinds=(NEW, OLD),
        schemas=KnownSchemas({**builtin_schemas(), **read_custom_schemas(defined())}),
        kubernetes_version="1.36",
    )
    context = replace(auditor.context.replace_operations(("UPDATE",)), relabelled=frozenset({OLD}))
    resource = resource_of(NEW, cog("a", "v2", title="a", weight=3))
    return [
        (bound, invocation_result)
        for bound in auditor.bound
        for invocation_result in list_invocations(bound, resource, NEW, context)
    ]


def results(*policies: dict[str, Any]) -> list[tuple[str, ...]]:
    """The labels of the object for each order of the policies."""
    afters = {
        tuple(sorted(as_object(dig(answer.after, "metadata", "labels")))) for answer in try_orders(acting(*policies))
    }
    assert {"shop.example/v2"} == {answer.after["apiVersion"] for answer in try_orders(acting(*policies))}
    return sorted(afters)


OWN = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'own': 'x'}}]"
OTHER = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'other': 'x'}}]"
NOTHING = "[JSONPatch{op: 'test', path: '/metadata/name', value: 'a'}]"
LABELLED = "has(object.metadata.labels)"
ALSO = (
    f"[JSONPatch{{op: 'add', path: {LABELLED} ? '/metadata/labels/also' : '/metadata/labels', "
    f"value: {LABELLED} ? dyn('x') : dyn({{'also': 'x'}})}}]"
)
AGAIN = {"reinvocationPolicy": "IfNeeded"}


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        pytest.param(
            [changing("a", "v2", OWN), changing("b", "v2", ALSO)], [("also", "own"), ("own",)], id="one version"
        ),
        pytest.param(
            [changing("a", "v1", OWN), changing("b", "v1", ALSO)], [("also", "own"), ("own",)], id="the other version"
        ),
        pytest.param([changing("a", "v2", OWN), changing("b", "v1", OTHER)], [("other",), ("own",)], id="two versions"),
        pytest.param(
            [changing("a", "v2", OWN), changing("b", "v1", NOTHING)], [(), ("own",)], id="one changes nothing"
        ),
        pytest.param(
            [changing("a", "v1", OWN), changing("b", "v2", NOTHING)],
            [(), ("own",)],
            id="the own version changes nothing",
        ),
        pytest.param(
            [changing("a", "v2", ALSO, **AGAIN), changing("b", "v1", NOTHING)],
            [("also",)],
            id="it is made again in the second pass",
        ),
        pytest.param(
            [changing("a", "v2", ALSO, **AGAIN), changing("b", "v1", OTHER)],
            [("also",), ("also", "other")],
            id="it joins the other in the second pass",
        ),
    ],
)
def test_changes_in_several_versions_are_combined_as_a_server_does(
    policies: list[dict[str, Any]], expected: list[tuple[str, ...]]
) -> None:
    """Of each pass, the version of the last policy counts."""
    assert sorted(expected) == results(*policies)


def joint(recorded: Recorded, name: str) -> WouldChange:
    """The change of a policy."""
    (outcome,) = [finding.outcome for finding in recorded.findings if finding.policy == name]
    assert isinstance(outcome, WouldChange)
    return outcome


def test_a_scan_combines_the_policies_of_several_versions() -> None:
    """One list has all of them; the report says that the order matters."""
    recorded = scanned(shop(changing("a", "v2", OWN), changing("b", "v1", OTHER)))

    assert [True, True] == [joint(recorded, name).order_matters for name in ("a", "b")]
    assert [["/metadata/labels"]] * 2 == [
        [change.path for change in joint(recorded, name).together or ()] for name in ("a", "b")
    ]


def test_one_policy_in_another_version_acts_alone() -> None:
    """Its change is stored, and there is nothing to combine."""
    acting_alone = acting(changing("b", "v1", OTHER))
    assert (None, [("other",)]) == (combine(acting_alone), results(changing("b", "v1", OTHER)))


def test_a_change_that_another_version_undoes_is_reported() -> None:
    """In the order of names, the policy that changes nothing runs last."""
    combined = combine(acting(changing("a", "v2", OWN), changing("b", "v1", NOTHING)))
    assert isinstance(combined, CombinedChange)
    assert ((), True, True) == (combined.patch, combined.undone, combined.order_matters)

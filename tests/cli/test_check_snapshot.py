"""`assay check` against a snapshot: its rules and objects decide, and what it withholds is undecided where a check may read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.checked import first, verdict
from tests.cli.conftest import Assay, Check
from tests.command import Ran
from tests.documents import Document
from tests.shop import (
    HUNGRY,
    bind,
    config_map,
    deployment,
    limit_range,
    mutation,
    namespace,
    pod,
    vap,
)

SECRET = {"name": "KEY", "value": "opensesame"}
IMAGES = "object.spec.template.spec.containers.all(c, c.image.startsWith('web'))"
VALUES = "object.spec.template.spec.containers.all(c, !has(c.env) || c.env.all(e, e.value != 'x'))"


@pytest.fixture
def check(assay: Assay, home: Path) -> Check:
    """Check manifests against the snapshot of a scan of documents."""

    def run(cluster: list[Document], *manifests: Document, flags: tuple[str, ...] = ()) -> Ran:
        (home / "cluster.yaml").write_text("\n---\n".join(map(json.dumps, [namespace(), *cluster])))
        (home / "app.yaml").write_text("\n---\n".join(json.dumps(each, indent=1) for each in manifests))
        (home / "x.snapshot").unlink(missing_ok=True)
        recorded = assay("scan", "--from", "cluster.yaml", "--snapshot", "x.snapshot", "-q")
        assert recorded.code in (0, 3), recorded.stderr
        return assay("check", "-f", "app.yaml", "--against", "x.snapshot", "-o", "json", *flags)

    return run


def with_secret(**container: Any) -> Document:
    """A Deployment whose container has a variable with a secret."""
    return deployment(containers=[{"name": "web", "image": "web:1", "env": [SECRET], **container}])


def test_the_rules_of_a_snapshot_decide(check: Check) -> None:
    """A violation is refused, and another object admitted."""
    rules = [vap("sized", "configmaps", expression="object.data.size == 'small'"), bind("sized")]

    assert (0, "admitted") == verdict(check(rules, config_map(data={"size": "small"})))
    assert (1, "refused") == verdict(check(rules, config_map(data={"size": "huge"})))


def test_the_object_of_a_snapshot_is_the_old_object(check: Check) -> None:
    """The request is an update of what the cluster had."""
    rules = [vap("kept", "configmaps", expression="object.data == oldObject.data"), bind("kept")]
    ran = check([*rules, config_map(data={"size": "small"})], config_map(data={"size": "huge"}))

    assert "UPDATE" == first(ran)["operation"]
    assert (1, "refused") == verdict(ran)


def test_a_snapshot_does_not_tell_what_kubectl_applied(check: Check) -> None:
    """The annotation has all values of the object, so it is withheld."""
    note = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(config_map(data={"size": "small"}))}
    rules = [vap("any", "configmaps", expression="true"), bind("any")]
    ran: Any = check([*rules, config_map(data={"size": "small"}, metadata={"annotations": note})], config_map()).report

    assert any("withholds what `kubectl apply` wrote before" in note for note in ran["notes"])


def test_a_check_that_reads_nothing_withheld_is_decided(check: Check) -> None:
    """The variable of the container is withheld, and its image is not."""
    rules = [vap("images", "deployments", group="apps", expression=IMAGES), bind("images")]

    assert (0, "admitted") == verdict(check([*rules, with_secret()], deployment()))
    manifest = deployment(containers=[{"name": "web", "image": "other:1"}])
    assert (1, "refused") == verdict(check([*rules, with_secret()], manifest))


def test_a_check_that_may_read_a_withheld_value_is_undecided(check: Check) -> None:
    """The manifest does not name the variable, so the request has that of the live object."""
    rules = [vap("values", "deployments", group="apps", expression=VALUES), bind("values")]
    ran = check([*rules, with_secret()], deployment())

    assert (3, "undecided") == verdict(ran)
    assert "values" == first(ran)["decisions"][0]["by"]
    assert (0, "admitted") == verdict(check(rules, with_secret()))


def test_the_pods_of_a_workload_with_a_withheld_value_are_undecided(check: Check) -> None:
    """The pod has what the template of the live object has."""
    expression = "object.spec.containers.all(c, !has(c.env) || c.env.all(e, e.value != 'x'))"
    ran = check([vap("values", "pods", expression=expression), bind("values"), with_secret()], deployment())
    assert (3, "undecided") == verdict(ran)


def test_a_mutation_that_may_read_a_withheld_value_is_undecided(check: Check) -> None:
    """What it would change is not known."""
    expression = 'Object{metadata: Object.metadata{labels: {"env": object.spec.template.spec.containers[0].?env[?0].?value.orValue("")}}}'
    ran = check([*mutation("labelled", expression, "deployments", group="apps"), with_secret()], deployment())
    assert (3, "undecided") == verdict(ran)


def test_a_mutation_of_other_fields_is_shown(check: Check) -> None:
    """It reads nothing that is withheld."""
    expression = 'Object{metadata: Object.metadata{labels: {"team": "web"}}}'
    ran = check([*mutation("labelled", expression, "deployments", group="apps"), with_secret()], deployment())
    assert (0, ["labelled"]) == (ran.code, first(ran)["changedBy"])


def test_a_param_with_a_withheld_value_is_undecided(check: Check) -> None:
    """A Secret as a param has no data in a snapshot, also where a manifest adds some."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "p", "namespace": "shop"},
        "data": {"a": "eA=="},
    }
    kind = {"apiVersion": "v1", "kind": "Secret"}
    policy = vap("matched", "configmaps", expression="'b' in params.data", paramKind=kind)
    rules = [policy, bind("matched", paramRef={"name": "p", "namespace": "shop", "parameterNotFoundAction": "Deny"})]

    assert (3, "undecided") == verdict(check([*rules, secret], config_map()))
    assert (3, "undecided") == verdict(check([*rules, secret], config_map(), {**secret, "data": {"b": "eA=="}}))


def test_plugins_read_the_objects_of_a_snapshot(check: Check) -> None:
    """A snapshot has LimitRanges, classes and accounts besides what its scan evaluated."""
    rules = [vap("fine", "pods", expression="true"), bind("fine")]

    assert (1, "refused") == verdict(check([*rules, limit_range(max={"cpu": "1"})], pod(containers=HUNGRY)))
    assert (0, "admitted") == verdict(check(rules, pod()))


def test_an_object_of_a_kind_that_the_snapshot_lacks_is_undecided(check: Check) -> None:
    """Whether the request is an update is not known; kinds that nothing concerns are admitted."""
    assert (3, "undecided") == verdict(check([], pod()))
    assert (0, "admitted") == verdict(check([], config_map()))


def test_no_withheld_value_is_shown(check: Check, home: Path) -> None:
    """Neither in the answer nor in an error."""
    rules = [vap("values", "deployments", group="apps", expression=VALUES), bind("values")]
    ran = check([*rules, with_secret()], deployment())
    assert "opensesame" not in repr((ran.stdout, ran.stderr))


def test_a_damaged_snapshot_is_a_usage_error(assay: Assay, check: Check, home: Path) -> None:
    """Nothing of it is used."""
    check([], config_map())
    data = bytearray((home / "x.snapshot").read_bytes())
    data[len(data) // 2] ^= 1
    (home / "x.snapshot").write_bytes(bytes(data))
    assert 2 == assay("check", "-f", "app.yaml", "--against", "x.snapshot").code

"""`assay explain`: the compiled form of a policy's expressions, and the evidence and workload of a finding."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map, policy

Write = Callable[[str, str], Path]


def test_the_python_of_a_policy(assay: Assay, write: Write) -> None:
    """Each expression has the function that evaluates most objects."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict', expression='has(object.data)')}")
    assay("scan", "--from", "all.yaml", "-q")

    ran = assay("explain", "strict", "--python")

    shown = ran.stdout.decode().splitlines()
    assert (0, ["# spec.validations[0].expression", "#     has(object.data)", "# reads object.data"]) == (
        ran.code,
        shown[:3],
    )
    assert ["# has(object.data): bool", "#   object: dyn", "def cel(activation):"] == shown[3:6]
    assert "'data' in object_1" in shown[7]


def test_a_finding_has_no_python(assay: Assay, write: Write) -> None:
    """Only policies have expressions."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    assay("scan", "--from", "all.yaml", "-q")

    ran = assay("explain", "abcdef012345", "--python")

    assert 2 == ran.code
    assert "--python needs the name of a policy" in ran.stderr


def test_a_finding_has_its_evidence(assay: Assay, write: Write) -> None:
    """The output has the values that decided, and their places in the object."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict', expression='object.metadata.name == string(1)')}")
    assay("scan", "--from", "all.yaml", "-q")
    finding_id = json.loads(assay("report", "-o", "json").stdout)["findings"][0]["id"]

    ran = assay("explain", finding_id)

    lines = ran.stdout.decode().splitlines()
    assert '    object.metadata.name is "one"' == lines[lines.index("Evidence:") + 1]


CONTROLLED = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: generated
  namespace: shop
  ownerReferences:
    - {apiVersion: apps/v1, kind: ReplicaSet, name: web-6b7f9c, uid: r, controller: true}
---
"""
REPLICA_SET = """\
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-6b7f9c
  namespace: shop
  uid: r
  ownerReferences:
    - {apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: d}
---
"""


@pytest.mark.parametrize(
    ("objects", "workload"),
    [
        pytest.param(CONTROLLED + REPLICA_SET, ["Workload Deployment web"], id="all objects"),
        pytest.param(CONTROLLED, ["Workload ReplicaSet web-6b7f9c (derived)"], id="without its controller"),
        pytest.param(f"{config_map('alone')}---\n", [], id="its own workload"),
    ],
)
def test_a_finding_has_its_workload(assay: Assay, write: Write, objects: str, workload: list[str]) -> None:
    """The top of the controllers, with a mark if a controller was not read; nothing for an object without a controller."""
    write("all.yaml", f"{objects}{bound('strict')}")
    assay("scan", "--from", "all.yaml", "-q")
    finding_id = json.loads(assay("report", "-o", "json").stdout)["findings"][0]["id"]

    lines = assay("explain", finding_id).stdout.decode().splitlines()

    assert workload == [line for line in lines if "Workload" in line]


def problem_of(assay: Assay) -> str:
    """The id of the first problem of the last scan."""
    problems = json.loads(assay("findings", "--problems", "-o", "json").stdout)["problems"]
    return str(problems[0]["id"])


def test_a_problem_is_explained_by_the_beginning_of_its_id(assay: Assay, write: Write) -> None:
    """The output begins with the problem, and has the evidence of one of its findings."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict', expression='object.metadata.name == string(1)')}")
    assay("scan", "--from", "all.yaml", "-q")
    problem = problem_of(assay)

    ran = assay("explain", problem[:6])

    lines = ran.stdout.decode().splitlines()
    assert f"Problem {problem}: 1 open finding of one check and one workload" == lines[0]
    assert '    object.metadata.name is "one"' == lines[lines.index("Evidence:") + 1]


def test_a_preview_is_not_counted_as_resolved(assay: Assay, write: Write) -> None:
    """The finding of an assumed binding was never open."""
    write("all.yaml", f"{config_map('one')}---\n{policy('strict')}")
    assay("scan", "--from", "all.yaml", "-q", "--assume-bound", "strict")
    problem = json.loads(assay("report", "-o", "json").stdout)["findings"][0]["problem"]

    ran = assay("explain", problem)

    assert (
        f"Problem {problem}: 1 preview or outdated finding of one check and one workload"
        == (ran.stdout.decode().splitlines()[0])
    )


def test_an_ambiguous_beginning_names_the_problems(assay: Assay, write: Write) -> None:
    """A beginning that two problems share is no problem."""
    objects = "---\n".join(config_map(f"map-{number}") for number in range(20))
    write("all.yaml", f"{objects}---\n{bound('strict', expression='object.metadata.name == string(1)')}")
    assay("scan", "--from", "all.yaml", "-q")
    digits = [
        problem["id"][2] for problem in json.loads(assay("findings", "--problems", "-o", "json").stdout)["problems"]
    ]
    shared = next(digit for digit in digits if digits.count(digit) > 1)

    ran = assay("explain", f"p-{shared}")

    assert 2 == ran.code
    assert f"Problem 'p-{shared}' is ambiguous: p-{shared}" in ran.stderr


def test_an_unknown_problem_names_the_command_that_lists_problems(assay: Assay, write: Write) -> None:
    """The message says where the ids are."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    assay("scan", "--from", "all.yaml", "-q")

    ran = assay("explain", "p-000000000000")

    assert 2 == ran.code
    assert "There is no problem 'p-000000000000'" in ran.stderr
    assert "assay findings --problems" in ran.stderr


def test_the_nearest_policy_is_suggested(assay: Assay, write: Write) -> None:
    """A mistyped name has one suggestion."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict-labels')}")
    assay("scan", "--from", "all.yaml", "-q")

    ran = assay("explain", "strikt-label")

    assert 2 == ran.code
    assert "Did you mean strict-labels?" in ran.stderr


def test_a_policy_lists_its_findings(assay: Assay, write: Write) -> None:
    """Each with its id, its status and its object."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict', expression='object.metadata.name == string(1)')}")
    assay("scan", "--from", "all.yaml", "-q")
    finding_id = json.loads(assay("report", "-o", "json").stdout)["findings"][0]["id"]

    lines = assay("explain", "strict").stdout.decode().splitlines()

    assert lines[-1].startswith(f"    {finding_id}  new  ConfigMap shop/one: ")


def test_a_resolved_problem_has_the_time_and_the_reason(assay: Assay, write: Write) -> None:
    """An object that is gone resolves its problem."""
    strict = bound("strict", expression="object.metadata.name == string(1)")
    write("all.yaml", f"{config_map('one')}---\n{config_map('two')}---\n{strict}")
    assay("scan", "--from", "all.yaml", "-q")
    problems = json.loads(assay("findings", "--problems", "-o", "json").stdout)["problems"]
    problem = next(each["id"] for each in problems if "one" in json.dumps(each))
    write("all.yaml", f"{config_map('two')}---\n{strict}")
    assay("scan", "--from", "all.yaml", "-q")

    lines = assay("explain", problem).stdout.decode().splitlines()

    assert f"Problem {problem}: 1 resolved of one check and one workload" == lines[0]
    [state] = [line for line in lines if line.startswith("First seen")]
    assert re.search(r"now resolved \d{4}-\d\d-\d\d \d\d:\d\dZ: the object is gone\.$", state)


def test_a_long_list_of_findings_names_the_command_for_the_rest(assay: Assay, write: Write) -> None:
    """Twenty findings are printed, and the others are counted; the command reads the same scan of the same database."""
    objects = "---\n".join(config_map(f"map-{number}") for number in range(25))
    write("all.yaml", f"{objects}---\n{bound('strict')}")
    assay("scan", "--from", "all.yaml", "-q", "--db", "a b.db")

    lines = assay("explain", "strict", "--db", "a b.db").stdout.decode().splitlines()

    assert "    and 5 more" == lines[lines.index("Next:") - 2]
    scan = json.loads(assay("report", "-o", "json", "--db", "a b.db").stdout)["provenance"]["scanId"]
    command = f"assay findings --policy strict --limit 0 --scan {scan} --db 'a b.db'"
    assert f"  {command}   # all findings of the policy" == lines[-1]
    assert 20 == sum("  ConfigMap shop/map-" in line for line in lines)


def test_a_policy_is_explained_by_the_beginning_of_its_name(assay: Assay, write: Write) -> None:
    """As a problem or a finding is; --python too."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict-labels')}---\n{bound('lenient')}")
    assay("scan", "--from", "all.yaml", "-q")

    whole, begun = assay("explain", "strict-labels"), assay("explain", "str")

    assert (0, whole.stdout) == (begun.code, begun.stdout)
    assert 0 == assay("explain", "str", "--python").code


def test_the_beginning_of_several_names_is_ambiguous(assay: Assay, write: Write) -> None:
    """The message has the names; a name that is whole is that policy, though another one begins so."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}---\n{bound('strict-labels')}")
    assay("scan", "--from", "all.yaml", "-q")

    ran = assay("explain", "stri")

    assert (2, "assay: Policy 'stri' is ambiguous: strict, strict-labels. Type more of the name.\n") == (
        ran.code,
        ran.stderr,
    )
    assert b"ValidatingAdmissionPolicy strict " == assay("explain", "strict").stdout[:33]


def test_digits_may_begin_an_id_and_a_name(assay: Assay, write: Write) -> None:
    """A name is taken where no id begins so; a text that begins both is ambiguous."""
    names = [f"{digit}-policy" for digit in "0123456789abcdef"]
    write("all.yaml", "---\n".join([config_map("one"), *(bound(name) for name in names)]))
    assay("scan", "--from", "all.yaml", "-q")
    ids = [each["id"][0] for each in json.loads(assay("report", "-o", "json").stdout)["findings"]]
    shared = next(digit for digit in ids if ids.count(digit) == 1)
    free = next(digit for digit in "0123456789abcdef" if digit not in ids)

    ambiguous, name = assay("explain", shared), assay("explain", free)

    assert (2, True) == (ambiguous.code, f"and {shared}-policy. Type more of it." in ambiguous.stderr)
    assert name.stdout.startswith(f"ValidatingAdmissionPolicy {free}-policy".encode())

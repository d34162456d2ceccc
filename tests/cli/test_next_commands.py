"""Every command that the program recommends under `Next:` runs as printed, however the user started the program."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map, policy
from tests.cli.test_explain import Write
from tests.command import ASSAY, SECONDS, Ran, environment
from tests.thorough import FULL

ROOT = Path(__file__).parents[2]
_COMMAND = re.compile(r"\bCommand\(")
_PURPOSE = re.compile(r"# (.*)$", re.MULTILINE)
PLUGIN = '#!/bin/sh\nshift\nexec kubectl-assay "$@"\n'


def shell(home: Path, script: str, path: str) -> subprocess.CompletedProcess[str]:
    """Run a script of a shell to its end."""
    variables = environment(home, {"PATH": path})
    return subprocess.run(
        ["bash", "-ec", script],
        cwd=home,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def run(assay: Assay, line: str) -> Ran:
    """Run a printed command."""
    program, *arguments = shlex.split(line, comments=True)
    assert "assay" == program
    return assay(*arguments)


def recommended(printed: str) -> str:
    """The lines below `Next:`."""
    return printed.split("\nNext:\n")[1]


def many(write: Write) -> None:
    """A policy with more findings than an explanation lists, all of one problem."""
    owner = "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: u, controller: true}]"
    maps = (config_map(f"map-{number}").replace("  name:", f"  {owner}\n  name:") for number in range(25))
    write("many.yaml", "---\n".join([*maps, bound("strict")]))


def listed_problem(assay: Assay) -> str:
    """The only problem of `many.yaml`, after a scan of it."""
    return run(assay, "assay findings --problems").stdout.decode().splitlines()[1].split()[0]


PODS = """
apiVersion: v1
kind: Pod
metadata: {name: one}
spec: {containers: [{name: c, image: web}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: strict}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "false"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: strict}
spec: {policyName: strict, validationActions: [Audit]}
"""
FIRST = "assay scan -q --from all.yaml"
CASES: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "problems": (
        (FIRST,),
        frozenset({"why the worst problem breaks its rule", "every finding, as pages to browse"}),
    ),
    "pages": (
        (f"{FIRST} --html pages --db 'my own.db'",),
        frozenset({"why the worst problem breaks its rule", "all problems"}),
    ),
    "new problems and pages": (
        ("assay scan -q --from clean.yaml --cluster-name c", f"{FIRST} --cluster-name c --html pages"),
        frozenset({"why the worst problem breaks its rule", "all new problems"}),
    ),
    "a preview": (
        ("assay scan -q --from unbound.yaml --assume-bound lax",),
        frozenset({"what the previewed policies would find", "every finding, as pages to browse"}),
    ),
    "nothing to evaluate": (
        ("assay scan -q --from empty.yaml",),
        frozenset({"how to choose the cluster or files, and the policies", "every finding, as pages to browse"}),
    ),
    "no problem": (
        ("assay scan -q --from clean.yaml",),
        frozenset({"the policies, and what they matched", "every finding, as pages to browse"}),
    ),
    "a replay": (
        (f"{FIRST} --snapshot one.snapshot", "assay scan -q --from one.snapshot"),
        frozenset({"keep the replay in a history, and explain its problems"}),
    ),
    "a policy": (
        ("assay scan -q --from many.yaml", "assay explain strict"),
        frozenset({"all findings of the policy"}),
    ),
    "a problem": (
        ("assay scan -q --from many.yaml", "assay explain PROBLEM"),
        frozenset({"all findings of the problem"}),
    ),
    "a preview of rules": (
        ("assay preview -q --against all.yaml --action strict=Audit",),
        frozenset({"the preview as a comment"}),
    ),
    "a preview of rules for workloads": (
        ("assay preview -q --against pods.yaml --action strict=Deny",),
        frozenset({"a text for each team"}),
    ),
    "a workload": (
        (FIRST, "assay explain ConfigMap/one"),
        frozenset({"why this problem breaks its rule"}),
    ),
}


@pytest.mark.parametrize(("lines", "purposes"), CASES.values(), ids=CASES)
def test_every_command_runs_as_printed(
    assay: Assay, write: Write, lines: tuple[str, ...], purposes: frozenset[str]
) -> None:
    """With the words that a shell makes of the line."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    write("clean.yaml", f"{config_map('one')}---\n{bound('fine', expression='true')}")
    write("unbound.yaml", f"{config_map('one')}---\n{policy('lax')}")
    write("empty.yaml", config_map("one"))
    write("pods.yaml", PODS)
    many(write)
    *before, last = lines
    for line in before:
        run(assay, line)
    if "PROBLEM" in last:
        last = last.replace("PROBLEM", listed_problem(assay))
    commands = recommended(run(assay, last).stdout.decode())

    ran = [run(assay, line) for line in commands.splitlines()]

    assert purposes == frozenset(map(str.strip, _PURPOSE.findall(commands)))
    assert [0] * len(ran) == [each.code for each in ran]
    assert any(each.stdout for each in ran)


def test_every_recommended_command_has_a_case() -> None:
    """Where the code makes one more command, a case must run it."""
    sources = [path.read_text() for path in (ROOT / "scanner").rglob("*.py")]
    made = sum(len(_COMMAND.findall(text)) for text in sources) - 1
    purposes = {purpose for _, own in CASES.values() for purpose in own}

    # `all problems` and `all new problems` are one command with and without a flag, and so are both of a preview. The two commands about missing rights need an API
    # server: `tests/integration/test_rbac.py` runs them.
    assert made == len(purposes) - 2 + 2


@pytest.mark.parametrize("start", ["assay", "kubectl assay", "bin/assay", "absolute", "python"])
def test_the_program_is_the_one_that_the_user_started(home: Path, write: Write, start: str) -> None:
    """On PATH, as a plugin of kubectl, by its path, and as a module of Python, in a shell, which runs the first command, or all."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    write("bin/kubectl", PLUGIN).chmod(0o755)
    (home / "bin" / "assay").symlink_to(ASSAY)
    begin = {"absolute": str(ASSAY), "python": f"{sys.executable} -m scanner"}.get(start, start)
    path = f"{ASSAY.parent}:{home / 'bin'}:/usr/bin:/bin" if start in {"assay", "kubectl assay"} else "/usr/bin:/bin"
    commands = recommended(shell(home, f"{begin} scan -q --from all.yaml", path).stdout)

    ran = shell(home, commands if FULL else commands.splitlines()[0], path)

    assert [True, True] == [line.startswith(f"  {begin} ") for line in commands.splitlines()]
    assert 0 == ran.returncode, ran.stderr


def test_a_workload_leads_to_the_problem_of_its_own_cluster(assay: Assay, write: Write) -> None:
    """The problem of a workload is that of the cluster whose scan was explained."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    for name in ("a", "b"):
        run(assay, f"{FIRST} --cluster-name {name}")
    command = recommended(run(assay, "assay explain ConfigMap/one --cluster-name a").stdout.decode())

    assert "--cluster-name a" in command
    assert 0 == run(assay, command).code

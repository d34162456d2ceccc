"""Every command that the program recommends under `Next:` runs as printed, however the user started the program."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.manifests import bound, config_map, policy
from tests.cli.test_explain import Write
from tests.command import ASSAY, SECONDS, environment

ROOT = Path(__file__).parents[2]
_COMMAND = re.compile(r"\bCommand\(")
_PURPOSE = re.compile(r"# (.*)$", re.MULTILINE)
STARTED = ".venv/bin/assay"
PLUGIN = '#!/bin/sh\nshift\nexec kubectl-assay "$@"\n'


@pytest.fixture
def user(home: Path) -> Path:
    """A home whose virtual environment has the program, which is not on PATH."""
    (home / STARTED).parent.mkdir(parents=True)
    (home / STARTED).symlink_to(ASSAY)
    return home


def run(home: Path, script: str, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
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


def recommended(printed: str) -> str:
    """The lines below `Next:`."""
    return printed.split("\nNext:\n")[1]


def many(write: Write) -> None:
    """A policy with more findings than an explanation lists, all of one problem."""
    owner = "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: u, controller: true}]"
    maps = (config_map(f"map-{number}").replace("  name:", f"  {owner}\n  name:") for number in range(25))
    write("many.yaml", "---\n".join([*maps, bound("strict")]))


def explained_problem(home: Path) -> str:
    """The command that explains the only problem of `many.yaml`."""
    run(home, f"{STARTED} scan -q --from many.yaml")
    listed = run(home, f"{STARTED} findings --problems").stdout
    return f"{STARTED} explain {listed.splitlines()[1].split()[0]}"


FIRST = f"{STARTED} scan -q --from all.yaml"
CASES: dict[str, tuple[Callable[[Path], str], frozenset[str]]] = {
    "problems": (
        lambda _: FIRST,
        frozenset({"why the worst problem breaks its rule", "every finding, as pages to browse"}),
    ),
    "pages": (
        lambda _: f"{FIRST} --html pages --db 'my own.db'",
        frozenset({"why the worst problem breaks its rule", "all problems"}),
    ),
    "new problems and pages": (
        lambda _: (
            f"{STARTED} scan -q --from clean.yaml --cluster-name c >/dev/null; {FIRST} --cluster-name c --html pages"
        ),
        frozenset({"why the worst problem breaks its rule", "all new problems"}),
    ),
    "a preview": (
        lambda _: f"{STARTED} scan -q --from unbound.yaml --assume-bound lax",
        frozenset({"what the previewed policies would find", "every finding, as pages to browse"}),
    ),
    "nothing to evaluate": (
        lambda _: f"{STARTED} scan -q --from empty.yaml || true",
        frozenset({"how to choose the cluster or files, and the policies", "every finding, as pages to browse"}),
    ),
    "no problem": (
        lambda _: f"{STARTED} scan -q --from clean.yaml",
        frozenset({"the policies, and what they matched", "every finding, as pages to browse"}),
    ),
    "a policy": (
        lambda home: (explained_problem(home), f"{STARTED} explain strict")[1],
        frozenset({"all findings of the policy"}),
    ),
    "a problem": (explained_problem, frozenset({"all findings of the problem"})),
    "a workload": (
        lambda _: f"{FIRST} >/dev/null; {STARTED} explain ConfigMap/one",
        frozenset({"why this problem breaks its rule"}),
    ),
}


@pytest.mark.parametrize(("command", "purposes"), CASES.values(), ids=CASES)
def test_every_command_runs_as_printed(
    user: Path, write: Write, command: Callable[[Path], str], purposes: frozenset[str]
) -> None:
    """In the shell of a user whose PATH does not have the program."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    write("clean.yaml", f"{config_map('one')}---\n{bound('fine', expression='true')}")
    write("unbound.yaml", f"{config_map('one')}---\n{policy('lax')}")
    write("empty.yaml", config_map("one"))
    many(write)
    printed = run(user, command(user))
    commands = recommended(printed.stdout)

    ran = run(user, commands)

    assert (0, purposes) == (ran.returncode, frozenset(map(str.strip, _PURPOSE.findall(commands)))), ran.stderr
    assert ran.stdout


def test_every_recommended_command_has_a_case() -> None:
    """Where the code makes one more command, a case must run it."""
    sources = [path.read_text() for path in (ROOT / "scanner").rglob("*.py")]
    made = sum(len(_COMMAND.findall(text)) for text in sources) - 1
    purposes = {purpose for _, own in CASES.values() for purpose in own}

    # `all problems` and `all new problems` are one command with and without a flag. The two commands about missing rights need an API
    # server: `tests/integration/test_rbac.py` runs them.
    assert made == len(purposes) - 1 + 2


@pytest.mark.parametrize("start", ["assay", "kubectl assay", "absolute", "python"])
def test_the_program_is_the_one_that_the_user_started(user: Path, write: Write, start: str) -> None:
    """On PATH, as a plugin of kubectl, by its path, and as a module of Python."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    write("bin/kubectl", PLUGIN).chmod(0o755)
    begin = {"absolute": str(ASSAY), "python": f"{sys.executable} -m scanner"}.get(start, start)
    path = f"{ASSAY.parent}:{user / 'bin'}:/usr/bin:/bin" if begin == start else "/usr/bin:/bin"
    commands = recommended(run(user, f"{begin} scan -q --from all.yaml", path).stdout)

    ran = run(user, commands, path)

    assert [True, True] == [line.startswith(f"  {begin} ") for line in commands.splitlines()]
    assert 0 == ran.returncode, ran.stderr


def test_a_workload_leads_to_the_problem_of_its_own_cluster(user: Path, write: Write) -> None:
    """The problem of a workload is that of the cluster whose scan was explained."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    for name in ("a", "b"):
        run(user, f"{FIRST} --cluster-name {name}")
    commands = recommended(run(user, f"{STARTED} explain ConfigMap/one --cluster-name a").stdout)

    assert "--cluster-name a" in commands
    assert 0 == run(user, commands).returncode

"""The recipes of `docs/ci.md`, the action and the hook run as printed, on a runner that has a clone and nothing else.

The distribution is built from the repository as it is, in the place of the commit on GitHub; its dependencies come from the package index. Stand-ins are there for what
the platform of a runner provides: `gh`, the API of GitLab, and the actions of others. Where no package index answers, these
tests skip and say so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from tests.cli.manifests import bound, config_map
from tests.packaging.test_wheel import OFFLINE, ROOT, UV

DOCUMENT: Final = ROOT / "docs" / "ci.md"
LIMIT_SECONDS: Final = 400
KEPT: Final = re.compile(r"(?i).*(cert|ca_bundle|proxy).*|pip_.*")
"""The variables that lead to a package index."""
AUTHOR: Final = ("-c", "user.name=ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false")
GH: Final = """\
#!/bin/sh
set -e
case "$1 $2" in
  "run list") echo 7 ;;
  "run download") cp "$ARTIFACTS/$5"/* . ;;
  "pr comment") echo "$3" > "$COMMENTS/number"; cp "$5" "$COMMENTS/body" ;;
  *) exit 64 ;;
esac
"""


def recipe(name: str) -> Any:
    """The block of the document that begins with the name of its file."""
    blocks = re.findall(r"```yaml\n# (\S+)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    [text] = [text for path, text in blocks if path == name]
    return yaml.safe_load(text)


def git(*arguments: str | Path, folder: Path) -> str:
    """Run git as an author, without the configuration of this machine."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", *AUTHOR, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=environment).stdout


def committed(folder: Path, *, branch: str = "main") -> Path:
    """The folder as a repository with one commit more."""
    if not (folder / ".git").exists():
        git("init", "--quiet", "--initial-branch", branch, folder=folder)
    git("add", "--all", folder=folder)
    git("commit", "--quiet", "--message", "Change", folder=folder)
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of this repository as it is, with the changes that are not committed."""
    folder = tmp_path_factory.mktemp("checkout")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return committed(folder)


@pytest.fixture(scope="module")
def index(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The variables with which git finds the checkout under the address of the repository, and pip keeps what it fetches."""
    kept = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
    return {
        **kept,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{checkout.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/OWNER/kube-assay",
        "PIP_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "no_proxy": "127.0.0.1",
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository of manifests; its branch `change` has a problem more than `main`."""
    folder = tmp_path / "project"
    (folder / "manifests").mkdir(parents=True)
    (folder / "policies").mkdir()
    (folder / "policies" / "named.yaml").write_text(bound("named", expression="object.metadata.name == 'good'"))
    (folder / "cluster").mkdir()
    (folder / "cluster" / "named.yaml").write_text(bound("named", expression="object.metadata.name == 'good'"))
    (folder / "cluster" / "shop.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
    (folder / "manifests" / "old.yaml").write_text(config_map("old"))
    committed(folder)
    git("checkout", "--quiet", "-b", "change", folder=folder)
    (folder / "manifests" / "new.yaml").write_text(config_map("new"))
    return committed(folder)


@dataclass
class Runner:
    """A machine with a home, a clone and the programs of its platform; `before` are folders of stand-ins."""

    folder: Path
    project: Path
    index: Mapping[str, str]
    before: tuple[Path, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("home", "temp"):
            (self.folder / name).mkdir(parents=True)
        self.path = [*map(str, self.before), str(Path(sys.executable).resolve().parent), *os.defpath.split(os.pathsep)]

    @property
    def workspace(self) -> Path:
        """The clone."""
        return self.folder / "clone"

    def clone(self, branch: str) -> None:
        """Check out a branch of the project."""
        git("clone", "--quiet", "--branch", branch, self.project, self.workspace, folder=self.folder)

    def run(
        self, script: str, *, flags: tuple[str, ...] = ("-e",), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the lines of a script in the clone; skip where no package index answers."""
        environment = {
            **self.index,
            "HOME": str(self.folder / "home"),
            "PATH": os.pathsep.join(filter(None, self.path)),
            "RUNNER_TEMP": str(self.folder / "temp"),
            **self.variables,
            **variables,
        }
        done = subprocess.run(
            ["bash", *flags, "-c", script.replace("@COMMIT", "@main")],
            cwd=self.workspace,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        if done.returncode and OFFLINE.search(done.stderr):
            pytest.skip("no package index answers, so nothing can be installed; connect and test again")
        return done


@dataclass
class GitHub:
    """The platform of a workflow: artifacts, comments and uploads are folders."""

    folder: Path
    project: Path
    index: Mapping[str, str]

    def __post_init__(self) -> None:
        for name in ("artifacts", "comments", "sarif", "bin"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "bin" / "gh").write_text(GH)
        (self.folder / "bin" / "gh").chmod(0o755)

    def runner(self, name: str) -> Runner:
        """A fresh runner."""
        places = {"ARTIFACTS": self.folder / "artifacts", "COMMENTS": self.folder / "comments"}
        variables = {key: str(path) for key, path in places.items()} | {"NUMBER": "12"}
        for file in ("GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
            variables[file] = str(self.folder / f"{name}-{file}")
            Path(variables[file]).touch()
        return Runner(self.folder / name, self.project, self.index, (self.folder / "bin",), variables)

    def job(self, steps: Any, event: str, branch: str) -> tuple[int, str]:
        """Run the steps of a job for an event; return the code of the first that fails, and all of stderr."""
        runner, code, stderr = self.runner(event), 0, ""
        for step in steps:
            if not self._applies(str(step.get("if", "")), event, failed=bool(code)):
                continue
            if "uses" in step:
                self._use(step, runner, branch)
                continue
            done = runner.run(step["run"])
            stderr += done.stderr
            code = code or done.returncode
            runner.path[:0] = Path(runner.variables["GITHUB_PATH"]).read_text().split()
        return code, stderr

    def _applies(self, condition: str, event: str, *, failed: bool) -> bool:
        parts = [part for part in condition.split(" && ") if part]
        if failed and "always()" not in parts:
            return False
        events = [part for part in parts if part != "always()"]
        assert set(events) <= {"github.event_name == 'push'", "github.event_name == 'pull_request'"}
        return not events or events == [f"github.event_name == '{event}'"]

    def _use(self, step: Any, runner: Runner, branch: str) -> None:
        match str(step["uses"]).split("@")[0]:
            case "actions/checkout":
                runner.clone(branch)
            case "actions/upload-artifact":
                place = self.folder / "artifacts" / step["with"]["name"]
                place.mkdir()
                shutil.copy2(runner.workspace / step["with"]["path"], place)
            case "github/codeql-action/upload-sarif":
                shutil.copy2(runner.workspace / step["with"]["sarif_file"], self.folder / "sarif")
            case other:
                pytest.fail(f"no stand-in for {other}")


def test_the_recipe_for_github_runs_as_printed(tmp_path: Path, project: Path, index: Mapping[str, str]) -> None:
    """The push keeps the report of main; the pull request fails for its own problem, comments it, and uploads it."""
    platform = GitHub(tmp_path / "github", project, index)
    [job] = recipe(".github/workflows/assay.yml")["jobs"].values()
    pushed, messages = platform.job(job["steps"], "push", "main")
    assert (0, "") == (pushed, messages.replace("Report: main.json\n", ""))

    code, stderr = platform.job(job["steps"], "pull_request", "change")
    comment = (platform.folder / "comments" / "body").read_text()
    [run] = json.loads((platform.folder / "sarif" / "assay.sarif").read_text())["runs"]

    assert 1 == code, stderr
    assert "gate failed: new (1 new problem since main.json: p-" in stderr
    assert "12\n" == (platform.folder / "comments" / "number").read_text()
    assert "ConfigMap shop/new" in comment.split("## New since main.json (1 problem)")[1].split("##")[0]
    assert comment == (platform.folder / "pull_request-GITHUB_STEP_SUMMARY").read_text()
    assert {"manifests/new.yaml": "new", "manifests/old.yaml": "unchanged"} == {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]: result["baselineState"]
        for result in run["results"]
    }


class GitLab(ThreadingHTTPServer):
    """The API of GitLab: the artifacts of the newest pipeline of a branch, and notes on merge requests."""

    def __init__(self) -> None:
        """Listen on a free port."""
        super().__init__(("127.0.0.1", 0), _Answer)
        self.artifacts: dict[tuple[str, str], bytes] = {}
        self.notes: dict[str, str] = {}

    @property
    def url(self) -> str:
        """The root of the API."""
        return f"http://127.0.0.1:{self.server_address[1]}/api/v4"


class _Answer(BaseHTTPRequestHandler):
    server: GitLab

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        key = parts.path.rpartition("/")[2], parse_qs(parts.query)["job"][0]
        known = parts.path == f"/api/v4/projects/5/jobs/artifacts/main/raw/{key[0]}" and key in self.server.artifacts
        self._reply(
            200 if known and self.headers["JOB-TOKEN"] == "job-secret" else 404, self.server.artifacts.get(key, b"")
        )

    def do_POST(self) -> None:
        body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        allowed = self.headers["PRIVATE-TOKEN"] == "note-secret"
        if allowed:
            self.server.notes[self.path] = body["body"][0]
        self._reply(201 if allowed else 401, b"{}")

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of http.server
        """Print nothing."""


@pytest.fixture
def gitlab() -> Iterator[GitLab]:
    """A running stand-in."""
    with GitLab() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def image(folder: Path) -> Path:
    """The programs of an image of Python: `python` and `pip`."""
    subprocess.run([Path(sys.executable).resolve(), "-m", "venv", folder], check=True)
    return folder / "bin"


def test_the_recipe_for_gitlab_runs_as_printed(
    tmp_path: Path, project: Path, index: Mapping[str, str], gitlab: GitLab
) -> None:
    """The branch keeps its report; the merge request fails for its own problem, comments it, and shows it as a test."""
    jobs = recipe(".gitlab-ci.yml")
    variables = {
        "CI_API_V4_URL": gitlab.url,
        "CI_PROJECT_ID": "5",
        "CI_DEFAULT_BRANCH": "main",
        "CI_JOB_TOKEN": "job-secret",
        "COMMENT_TOKEN": "note-secret",
        "CI_MERGE_REQUEST_IID": "12",
    }

    def job(name: str, branch: str) -> tuple[Runner, subprocess.CompletedProcess[str]]:
        runner = Runner(tmp_path / name, project, index, (image(tmp_path / f"image-{name}"),), variables)
        runner.clone(branch)
        return runner, runner.run("\n".join(jobs[name]["script"]), flags=("-e", "-o", "pipefail"))

    runner, done = job("assay-main", "main")
    assert 0 == done.returncode, done.stderr
    for path in jobs["assay-main"]["artifacts"]["paths"]:
        gitlab.artifacts[path, "assay-main"] = (runner.workspace / path).read_bytes()

    runner, done = job("assay", "change")
    after = runner.run("\n".join(jobs["assay"]["after_script"]))
    junit = (runner.workspace / jobs["assay"]["artifacts"]["reports"]["junit"]).read_text()
    note = gitlab.notes["/api/v4/projects/5/merge_requests/12/notes"]

    assert (1, 0) == (done.returncode, after.returncode), done.stderr + after.stderr
    assert "gate failed: new (1 new problem since main.json: p-" in done.stderr
    assert 'failures="1" errors="0" skipped="1"' in junit
    assert (runner.workspace / "assay.md").read_text() == note
    assert "ConfigMap shop/new" in note.split("## New since main.json (1 problem)")[1].split("##")[0]


ACTION: Final = yaml.safe_load((ROOT / "action.yml").read_text())


def act(runner: Runner, checkout: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the steps of the action with some inputs and the defaults of the others."""
    given = {name: inputs.get(name.replace("-", "_"), each["default"]) for name, each in ACTION["inputs"].items()}
    done = None
    for step in ACTION["runs"]["steps"]:
        assert "bash" == step["shell"]
        values = {
            name: given[re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", text)[1]]  # type: ignore[index]
            for name, text in step.get("env", {}).items()
        }
        done = runner.run(step["run"], flags=("-e", "-o", "pipefail"), GITHUB_ACTION_PATH=str(checkout), **values)
        if done.returncode:
            return done
    assert done is not None
    return done


def test_the_action_runs_as_it_is(tmp_path: Path, project: Path, index: Mapping[str, str], checkout: Path) -> None:
    """Without a baseline every problem fails it, with one the new ones; it writes the summary and its outputs."""
    platform = GitHub(tmp_path / "github", project, index)
    runner = platform.runner("main")
    runner.clone("main")
    first = act(runner, checkout, **{"from": "manifests", "policies": "policies", "fail_on": ""})
    baseline = shutil.copy2(runner.folder / "temp" / "assay-reports" / "assay.json", runner.workspace / "main.json")

    runner.variables["GITHUB_STEP_SUMMARY"] = str(tmp_path / "summary")
    git("checkout", "--quiet", "change", folder=runner.workspace)
    (runner.workspace / "more things").mkdir()
    (runner.workspace / "more things" / "a.yaml").write_text(config_map("other"))
    paths = {"from": "manifests\nmore things\n", "policies": "policies", "arguments": "--cluster-name\nshop"}
    second = act(runner, checkout, **paths, baseline=str(baseline))
    outputs = dict(line.split("=", 1) for line in Path(runner.variables["GITHUB_OUTPUT"]).read_text().splitlines())

    assert (0, 1) == (first.returncode, second.returncode), first.stderr + second.stderr
    assert "gate failed: new (2 new problems since " in second.stderr
    assert set(ACTION["outputs"]) == set(outputs)
    assert "1" == outputs["exit-code"]
    assert [] == [name for name, path in outputs.items() if name != "exit-code" and not Path(path).is_file()]
    assert (tmp_path / "summary").read_text() == Path(outputs["markdown"]).read_text()


def test_the_action_checks_manifests(tmp_path: Path, project: Path, index: Mapping[str, str], checkout: Path) -> None:
    """With `check` it fails for what the cluster would refuse, and writes the same outputs."""
    runner = GitHub(tmp_path / "github", project, index).runner("main")
    runner.clone("change")
    done = act(runner, checkout, check="manifests", against="cluster", arguments="-n\nshop")
    outputs = dict(line.split("=", 1) for line in Path(runner.variables["GITHUB_OUTPUT"]).read_text().splitlines())

    assert 1 == done.returncode, done.stderr
    assert "1" == outputs["exit-code"]
    assert {"refused": 2} == {key: n for key, n in json.loads(Path(outputs["json"]).read_text())["counts"].items() if n}
    assert [] == [name for name, path in outputs.items() if name != "exit-code" and not Path(path).is_file()]
    assert "## The cluster would refuse this" in Path(runner.variables["GITHUB_STEP_SUMMARY"]).read_text()


def test_the_recipe_for_comments_runs_as_printed(tmp_path: Path, project: Path, index: Mapping[str, str]) -> None:
    """The steps of `docs/check.md`, after the installation of `docs/ci.md`: the comment says what the cluster would refuse."""
    [printed] = re.findall(
        r"```yaml\n(      - name: Check\n.*?)```", (ROOT / "docs" / "check.md").read_text(), re.DOTALL
    )
    [job] = recipe(".github/workflows/assay.yml")["jobs"].values()
    platform = GitHub(tmp_path / "github", project, index)
    code, stderr = platform.job([*job["steps"][:2], *yaml.safe_load(printed)], "pull_request", "change")

    assert 1 == code, stderr
    assert "12\n" == (platform.folder / "comments" / "number").read_text()
    assert "ConfigMap shop/new" in (platform.folder / "comments" / "body").read_text()


def test_the_recipe_for_changed_policies_runs_as_printed(
    tmp_path: Path, project: Path, index: Mapping[str, str]
) -> None:
    """The steps of `docs/preview.md`: the comment says what the changed policies would newly deny of the last night's objects."""
    [printed] = re.findall(
        r"```yaml\n(      - name: Snapshot of.*?)```", (ROOT / "docs" / "preview.md").read_text(), re.DOTALL
    )
    (project / "cluster" / "good.yaml").write_text(config_map("good"))
    (project / "policies" / "named.yaml").write_text(bound("named", expression="object.metadata.name == 'better'"))
    committed(project)
    platform = GitHub(tmp_path / "github", project, index)
    [job] = recipe(".github/workflows/assay.yml")["jobs"].values()
    kept = platform.folder / "artifacts" / "assay-snapshot"
    kept.mkdir()
    create = [
        sys.executable,
        "-m",
        "scanner",
        "snapshot",
        "create",
        str(kept / "nightly.snapshot"),
        "--from",
        "cluster",
    ]
    subprocess.run(create, cwd=project, check=True, capture_output=True)

    code, stderr = platform.job([*job["steps"][:2], *yaml.safe_load(printed)], "pull_request", "change")
    comment = (platform.folder / "comments" / "body").read_text()

    assert 1 == code, stderr
    assert "12\n" == (platform.folder / "comments" / "number").read_text()
    assert "1 object would be newly denied" in comment
    assert "ConfigMap shop/good" in comment


def test_every_output_of_the_action_is_that_of_a_step() -> None:
    """An output without a value would be empty in silence."""
    values = {name: each["value"] for name, each in ACTION["outputs"].items()}

    assert {name: f"${{{{ steps.scan.outputs.{name} }}}}" for name in values} == values
    assert "scan" in {step.get("id") for step in ACTION["runs"]["steps"]}


def test_every_recipe_installs_the_same_from_the_repository() -> None:
    """Until a release exists, no package index has Assay; the page names the commit once."""
    named = re.findall(r"kube-assay@([^\s\"]+)|rev: (\S+)", DOCUMENT.read_text())

    assert [{"COMMIT", ""}] * 5 == [set(names) for names in named]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.stem
)
def test_no_page_installs_from_a_package_index(page: Path) -> None:
    """A reader of any page gets what the page of the installation promises."""
    assert [] == re.findall(r"(?:pip|pipx|uv tool)\S* install[^\n]*[\s'\"]kube-assay\b", page.read_text())


def test_the_hook_runs_as_printed(tmp_path: Path, project: Path, index: Mapping[str, str], checkout: Path) -> None:
    """pre-commit installs both hooks from the checkout, and they fail for what admission would refuse."""
    settings = recipe(".pre-commit-config.yaml")
    [printed] = re.findall(r"```yaml\n( +- id: assay-check\n.*?)```", DOCUMENT.read_text(), re.DOTALL)
    settings["repos"][0]["hooks"] += yaml.safe_load(printed)
    settings["repos"][0] |= {"repo": str(checkout), "rev": git("rev-parse", "HEAD", folder=checkout).strip()}
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump(settings))
    committed(project)
    runner = Runner(tmp_path / "runner", project, index, (UV.parent,), {"PRE_COMMIT_HOME": str(tmp_path / "hooks")})
    runner.clone("change")
    failed = runner.run("pre-commit run --all-files")
    git("rm", "--quiet", "-r", "manifests", folder=runner.workspace)
    (runner.workspace / "manifests").mkdir()
    (runner.workspace / "manifests" / "good.yaml").write_text(config_map("good"))
    git("add", "--all", folder=runner.workspace)
    passed = runner.run("pre-commit run --all-files")

    assert (1, 0) == (failed.returncode, passed.returncode), failed.stdout + failed.stderr + passed.stdout
    assert "gate failed: deny (2 problems that admission would refuse)" in failed.stdout
    assert "2 objects: 2 refused." in failed.stdout

"""The whole text of `assay check` and `assay preview` in terminals of three widths, and as a comment in Markdown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from tests.command import assay_here
from tests.documents import Document
from tests.shop import bind, config_map, mutation, namespace, vap

WIDTHS: Final = (60, 80, 120)
ENFORCE: Final = "pod-security.kubernetes.io/enforce"
WARN: Final = "pod-security.kubernetes.io/warn"
LIMITED: Final = "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits))"
COST: Final = 'Object{{metadata: Object.metadata{{labels: {{"cost-center": "{}"}}}}}}'
CHECK: Final = ("check", "-f", "app.yaml", "--against", "cluster.yaml")
PREVIEW: Final = (
    *("preview", "-q", "--against", "cluster.yaml", "-f", "mutating.yaml"),
    *("--action", "limits=Deny", "--action", "contacts=Deny"),
)
EXIT_CODES: Final = {"check": 3, "preview": 3}
Run = Callable[..., str]


def workload(kind: str, name: str, replicas: int = 2, **pod_spec: Any) -> Document:
    """A workload in the shop, of which a team is the owner."""
    labels = {"app": name, "team": "storefront"}
    spec = {"containers": [{"name": "web", "image": f"registry.example.com/{name}:1"}], **pod_spec}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def pod(name: str, **metadata: Any) -> Document:
    """A Pod in the shop that runs."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, **metadata},
        "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


RULES: Final = [
    vap("limits", "pods", validations=[{"expression": LIMITED, "message": "every container has limits"}]),
    bind("limits", "Audit"),
    vap(
        "replicas",
        "deployments",
        group="apps",
        validations=[
            {
                "expression": "object.spec.replicas <= 5",
                "messageExpression": "'at most 5 replicas are allowed, and ' + string(object.spec.replicas) + ' are asked for'",
            }
        ],
    ),
    bind("replicas-everywhere", policyName="replicas"),
    vap(
        "contacts",
        "configmaps",
        validations=[
            {"expression": "has(object.metadata.annotations)", "message": "a ConfigMap names its contact"},
        ],
    ),
    bind("contacts", "Warn"),
    *mutation("cost", COST.format("web"), "deployments", group="apps"),
]
CLUSTER: Final = [
    namespace(**{ENFORCE: "baseline", WARN: "restricted"}),
    *RULES,
    workload("Deployment", "checkout"),
    workload("Deployment", "search"),
    workload("StatefulSet", "orders"),
    pod("debug"),
    config_map("settings", metadata={"finalizers": ["example.com/keep"]}),
    config_map("flags"),
]
MANIFESTS: Final = [
    workload("Deployment", "checkout", 8),
    workload("Deployment", "agent", hostNetwork=True),
    config_map("colors"),
    config_map("named", metadata={"annotations": {"contact": "dana"}}),
    {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g", "namespace": "shop"}},
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cluster, manifests, and mutating policies that set a field of one of the cluster, too."""
    folder = tmp_path_factory.mktemp("answers")
    finance = mutation("cost-of-finance", COST.format("finance"), "deployments", group="apps")
    for name, documents in (("cluster", CLUSTER), ("app", MANIFESTS), ("mutating", finance)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(documents, sort_keys=False))
    (folder / "assay.yaml").write_text("owners:\n  - {label: team, place: object}\n")
    return folder


@pytest.fixture
def run(home: Path) -> Run:
    """Run a command in a terminal of some width."""

    def ran(arguments: tuple[str, ...], width: int = 80) -> str:
        done = assay_here(*arguments, home=home, variables={"COLUMNS": str(width), "NO_COLOR": "1"})
        assert (EXIT_CODES[arguments[0]], "") == (done.code, done.stderr)
        return done.stdout.decode()

    return ran


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("arguments", [CHECK, PREVIEW], ids=["check", "preview"])
def test_an_answer_at_a_width(run: Run, arguments: tuple[str, ...], width: int, snapshot: SnapshotAssertion) -> None:
    """No line is wider than the terminal, and the text is the recorded one."""
    text = run(arguments, width)

    assert [] == [line for line in text.splitlines() if cell_len(line) > width]
    assert snapshot == text


@pytest.mark.parametrize(
    "arguments", [CHECK, PREVIEW, (*PREVIEW, "--by", "owner")], ids=["check", "preview", "by owner"]
)
def test_an_answer_as_a_comment(run: Run, arguments: tuple[str, ...], snapshot: SnapshotAssertion) -> None:
    """In Markdown, as the comment on a pull request."""
    assert snapshot == run((*arguments, "-o", "markdown"))


def test_a_change_in_a_comment_is_no_list_of_its_own(run: Run) -> None:
    """GitHub reads a plus sign at the begin of an item as another list."""
    assert '- \\+ /metadata/labels/cost-center: "web"' in run((*CHECK, "-o", "markdown"))


def test_equal_objects_share_their_details(run: Run) -> None:
    """Two Deployments with the same mutations stand one below the other, and the mutations once."""
    lines = run(PREVIEW).splitlines()
    first = lines.index("Changed otherwise by mutating policies:")

    assert ["  Deployment shop/checkout", "  Deployment shop/search"] == lines[first + 1 : first + 3]
    assert 1 == sum("by cost-of-finance" in line for line in lines[first:])

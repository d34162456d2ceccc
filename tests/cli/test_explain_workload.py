"""`assay explain KIND/NAME`, `NAMESPACE/NAME` and `NAME -n NAMESPACE`: the problems of a workload or of an object."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map, policy
from tests.cli.test_explain import CONTROLLED, REPLICA_SET, Write

OWNED = CONTROLLED + REPLICA_SET
JOB_NAMESPACE = config_map("nightly", namespace="job")
JOBS = bound("jobs").replace('apiGroups: [""]', "apiGroups: [batch]").replace("configmaps", "jobs")
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: nightly, namespace: shop}
"""


@pytest.fixture
def scanned(assay: Assay, write: Write) -> Assay:
    """A ConfigMap of Deployment `shop/web`, others alone, a Job, and a namespace with the name of its kind."""
    alone = [config_map("one"), config_map("one", namespace="depot"), config_map("fine"), JOB_NAMESPACE, JOB]
    strict = bound("strict", expression="object.metadata.name == 'fine'", message="only fine")
    write("all.yaml", "---\n".join([OWNED, *alone, strict, bound("fine", expression="true"), JOBS]))
    assay("scan", "--from", "all.yaml", "-q")
    return assay


def test_every_check_of_an_object_is_listed(scanned: Assay) -> None:
    """Passes included, and the explanation names what was not stored."""
    ran = scanned("explain", "ConfigMap/one", "-n", "depot").stdout.decode()

    assert "2 checks of 1 object: 1 refused, 1 passed" in ran
    assert re.search(r"^passed +fine validations\[0\] +fine$", ran, re.MULTILINE)
    assert "not what they contained" in ran


def test_an_object_without_a_problem_has_its_checks(scanned: Assay) -> None:
    """An object that passes is known."""
    ran = scanned("explain", "ConfigMap/fine").stdout.decode()

    assert ran.startswith("ConfigMap shop/fine: 0 open problems")
    assert "2 checks of 1 object: 2 passed" in ran


def titles(text: bytes) -> list[str]:
    """The workloads and objects of an explanation."""
    return re.findall(r"^(\S+ \S+): \d+ open problems? in scan", text.decode(), re.MULTILINE)


@pytest.mark.parametrize(
    ("subject", "places"),
    [
        (("Deployment/web",), ["Deployment shop/web"]),
        (("deployments/web",), ["Deployment shop/web"]),
        (("deployment.apps/web",), ["Deployment shop/web"]),
        (("shop/web",), ["Deployment shop/web"]),
        (("web", "-n", "shop"), ["Deployment shop/web"]),
        (("ConfigMap/generated",), ["ConfigMap shop/generated"]),
        (("shop/generated",), ["ConfigMap shop/generated"]),
        (("ConfigMap/one",), ["ConfigMap depot/one", "ConfigMap shop/one"]),
        (("ConfigMap/one", "-n", "depot"), ["ConfigMap depot/one"]),
        (("depot/one",), ["ConfigMap depot/one"]),
    ],
    ids=" ".join,
)
def test_a_workload_or_object_lists_its_problems(scanned: Assay, subject: tuple[str, ...], places: list[str]) -> None:
    """Of every namespace that has one of this name, unless the user names the namespace."""
    ran = scanned("explain", *subject)

    assert (0, places) == (ran.code, titles(ran.stdout))
    assert len(places) == len(
        re.findall(rb"^p-[0-9a-f]{12}  refused   new .*strict validations\[0\]: only fine$", ran.stdout, re.MULTILINE)
    )


def test_a_served_kind_comes_before_a_namespace_of_that_name(scanned: Assay) -> None:
    """`-n` names the namespace."""
    of_kind, of_namespace = scanned("explain", "job/nightly"), scanned("explain", "nightly", "-n", "job")

    assert ["Job shop/nightly"] == titles(of_kind.stdout)
    assert ["ConfigMap job/nightly"] == titles(of_namespace.stdout)


def test_an_object_without_a_problem_is_known(scanned: Assay) -> None:
    """The scan evaluated the object, and the sentence names the scan."""
    ran = scanned("explain", "ConfigMap/fine")

    assert 0 == ran.code
    assert re.match(rb"ConfigMap shop/fine: 0 open problems in scan \S+\n", ran.stdout)


@pytest.mark.parametrize(
    ("subject", "remedy"),
    [
        (("ConfigMap/onne",), r"evaluated no ConfigMap 'onne'\. Did you mean one\?"),
        (("Deployment/web", "-n", "depot"), r"evaluated no Deployment 'web' in namespace depot\."),
        (("shop/webb",), r"evaluated no object 'webb' in namespace shop\. Did you mean web\?"),
        (
            ("shpo/web",),
            r"'shpo' is no kind, and no namespace with an object that scan \S+ evaluated\. Did you mean shop\?",
        ),
        (("Deploymnt/web",), r"Did you mean Deployment\?"),
        (("web", "-n", "shpo"), r"namespace 'shpo' has no object that scan \S+ evaluated\. Did you mean shop\?"),
        (("Deploymnt/web", "-n", "shop"), r"For an object of any kind, run: assay explain web -n shop\n"),
        (("job/one",), r"evaluated no Job 'one'\."),
    ],
    ids=" ".join,
)
def test_an_unknown_name_has_a_remedy(scanned: Assay, subject: tuple[str, ...], remedy: str) -> None:
    """The nearest name, or a command that lists what there is."""
    ran = scanned("explain", *subject)

    assert (2, b"") == (ran.code, ran.stdout)
    assert re.search(remedy, ran.stderr), ran.stderr
    assert re.search(r"run: assay explain|List all problems with: assay findings --problems --scan \S+\n", ran.stderr)


def test_an_unknown_object_of_a_kind_names_the_namespace_that_has_it(assay: Assay, write: Write) -> None:
    """The kind came first, and the user may have meant the namespace."""
    write("all.yaml", f"{JOB_NAMESPACE}---\n{bound('strict')}")
    assay("scan", "--from", "all.yaml", "-q")

    ran = assay("explain", "job/nightly")

    assert (2, True) == (ran.code, "For the object in namespace job, run: assay explain nightly -n job" in ran.stderr)


@pytest.mark.parametrize("subject", ["a/b/c", "/b", "a/"])
def test_a_text_that_names_nothing_has_the_forms(scanned: Assay, subject: str) -> None:
    """The message has the forms that name an object."""
    ran = scanned("explain", subject)

    assert 2 == ran.code
    assert "write KIND/NAME, NAMESPACE/NAME, or NAME with -n NAMESPACE" in ran.stderr


def test_an_earlier_scan_is_named_as_everywhere(scanned: Assay, write: Write) -> None:
    """`--scan` chooses the scan of a policy, of a workload and of an object."""
    write("all.yaml", f"{config_map('two')}---\n{bound('other')}")
    scanned("scan", "--from", "all.yaml", "-q")

    earlier, last = (scanned("explain", "shop/one", "--scan", scan).stdout for scan in ("last~1", "last"))

    assert [True, True] == [
        earlier.startswith(b"ConfigMap shop/one: 1 open"),
        last.startswith(b"ConfigMap shop/one: 0 open"),
    ]
    assert [0, 2] == [scanned("explain", "strict", "--scan", scan).code for scan in ("last~1", "last")]


def test_the_history_of_a_problem_is_of_no_single_scan(scanned: Assay) -> None:
    """`--scan` would be ignored, so it is refused."""
    problem = scanned("findings", "--problems").stdout.decode().splitlines()[1].split()[0]

    ran = scanned("explain", problem, "--scan", "last~1")

    assert (2, "assay: the explanation of a problem or finding covers all scans: leave --scan out\n") == (
        ran.code,
        ran.stderr,
    )


def test_resolved_problems_and_previews_are_marked(assay: Assay, write: Write) -> None:
    """Neither is an open problem."""
    strict = bound("strict", expression="object.metadata.name != 'one' || has(object.data)")
    write("all.yaml", f"{config_map('one')}---\n{strict}")
    assay("scan", "--from", "all.yaml", "-q")
    write("all.yaml", f"{config_map('one')}data: {{a: b}}\n---\n{strict}---\n{policy('lax')}")
    assay("scan", "--from", "all.yaml", "-q")
    resolved = assay("explain", "ConfigMap/one").stdout.decode()
    assay("scan", "--from", "all.yaml", "-q", "--assume-bound", "lax")
    preview = assay("explain", "ConfigMap/one").stdout.decode()

    assert re.search(r"0 open problems in scan .*\n.*\np-\S+ +resolved +medium +strict validations\[0\]: ", resolved)
    assert re.search(r"0 open problems in scan .*\n.*\n\S+ +\w+ +preview +medium +lax validations\[0\]: ", preview)

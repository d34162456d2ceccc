"""The installed release of Kyverno, which a scan reads from its Deployments."""

from __future__ import annotations

from typing import Any, Final

import pytest

from scanner.model.scans.scan import FILES
from scanner.policies.kyverno.family import KyvernoOptions
from scanner.policies.kyverno.own_configuration import ConfigurationSource
from scanner.policies.language import with_options
from scanner.rbac import list_permissions
from scanner.scan.options import Options
from tests.documents import KINDS
from tests.policies.kyverno.made import pod, policy
from tests.policies.kyverno.test_scanned import KYVERNO, TEAM
from tests.scan.fakes import FakeCluster, Recorded, forbidden, scanned

DIGEST: Final = f"sha256:{'a' * 64}"
NEWEST: Final = "Assay applied the rules of Kyverno 1.19: name another release with --kyverno-version."


def controller(
    image: str = f"reg.example.com/kyverno@{DIGEST}",
    *,
    component: str = "admission-controller",
    version: str = "",
    namespace: str = "kyverno",
    container: str = "kyverno",
) -> Any:
    """A Deployment of Kyverno."""
    labels = {"app.kubernetes.io/component": component, "app.kubernetes.io/version": version}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": f"kyverno-{component}",
            "namespace": namespace,
            "labels": {key: value for key, value in labels.items() if value},
        },
        "spec": {"template": {"spec": {"containers": [{"name": container, "image": image}]}}},
    }


def scan_of(*documents: Any, refused: Any = None, files: bool = False, **options: Any) -> Recorded:
    """A scan of a cluster with a policy about Pods, and with some documents."""
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kyverno"}}
    objects = [TEAM, home, policy("true", resources=("pods",)), pod(), *documents]
    source = FILES if files else "cluster"
    cluster = FakeCluster(objects, kinds=(*KINDS, *KYVERNO), refused=refused or {}, source=source)
    return scanned(cluster, Options(languages=with_options(KyvernoOptions(**options))))


def applied(*documents: Any, **options: Any) -> tuple[str, str]:
    """The release in the method of a scan, and its note."""
    method = scan_of(*documents, **options).start.method
    return method.kyverno_release, method.kyverno_note


@pytest.mark.parametrize(
    ("expected", "deployment"),
    [
        ("1.18", controller("ghcr.io/kyverno/kyverno:v1.18.2")),
        ("1.17", controller(f"ghcr.io/kyverno/kyverno:v1.17.2@{DIGEST}")),
        ("1.16", controller("registry:5000/mirror/kyverno:1.16.3-corp.1", component="")),
        ("1.18", controller(version="v1.18.2")),
        ("1.18", controller(version="3.8.2")),
        ("1.16", controller("ghcr.io/kyverno/kyverno:latest", version="1.16.0")),
        ("1.17", controller("ghcr.io/kyverno/kyverno:v1.17.1", version="3.8.2")),
        ("1.16", controller("reg.example.com/security/own-name:v1.16.3")),
    ],
    ids=["tag", "tag and digest", "other registry", "label", "chart", "no version in the tag", "both", "other image"],
)
def test_the_tag_or_the_label_of_the_admission_controller_is_the_release(expected: str, deployment: Any) -> None:
    """The tag tells what runs; the label of a chart is the version of the chart."""
    assert (expected, "") == applied(deployment)


def test_the_admission_controller_decides() -> None:
    """During an upgrade the other controllers can have another release."""
    others = controller(
        "ghcr.io/kyverno/reports-controller:v1.17.2", component="reports-controller", container="controller"
    )
    assert ("1.18", "") == applied(others, controller("ghcr.io/kyverno/kyverno:v1.18.2"))


@pytest.mark.parametrize(
    ("why", "documents"),
    [
        ("Namespace kyverno has no Deployment of Kyverno", ()),
        (
            "Namespace kyverno has no Deployment of Kyverno",
            (controller("web:v1.17.0", component="web", container="web"),),
        ),
        ("Namespace kyverno has no Deployment of Kyverno", (controller("kyverno:v1.17.0", namespace="team"),)),
        (
            "The Deployments of Kyverno in namespace kyverno have neither a tag nor a label with a version",
            (controller(),),
        ),
        (
            "The Deployments of Kyverno in namespace kyverno have neither a tag nor a label with a version",
            (controller(version="latest"),),
        ),
    ],
    ids=["none", "of others", "elsewhere", "digest alone", "no version"],
)
def test_the_newest_release_decides_if_the_installed_one_is_not_known(why: str, documents: Any) -> None:
    """The note tells the reason."""
    assert ("1.19", f"{why}. {NEWEST}") == applied(*documents)


def test_without_the_right_the_newest_release_decides() -> None:
    """A scan is complete without the right."""
    scan = scan_of(controller("kyverno:v1.17.0"), refused={"kyverno/deployments.apps": forbidden("deployments")})
    note = f"The Deployments in namespace kyverno cannot be read: cannot list deployments: forbidden. {NEWEST}"
    assert ("1.19", note, ()) == (scan.start.method.kyverno_release, scan.start.method.kyverno_note, scan.gaps)


def test_files_without_kyverno_have_the_newest_release() -> None:
    """Files need no Deployment; one among them decides."""
    assert [("1.19", ""), ("1.17", "")] == [
        applied(files=True),
        applied(controller("kyverno:v1.17.0"), files=True),
    ]


def test_a_named_release_decides() -> None:
    """The Deployments are not read."""
    cluster = FakeCluster([TEAM, policy("true"), controller("kyverno:v1.17.0")], kinds=(*KINDS, *KYVERNO))
    scan = scanned(cluster, Options(languages=with_options(KyvernoOptions(version="v1.18.1"))))
    assert ("1.18", False) == (scan.start.method.kyverno_release, "kyverno/deployments.apps" in cluster.listed)


def test_a_scan_without_policies_of_kyverno_has_no_release() -> None:
    """Nothing is read then."""
    cluster = FakeCluster([TEAM, controller("kyverno:v1.17.0")], kinds=(*KINDS, *KYVERNO))
    scan = scanned(cluster, Options())
    assert ("", False) == (scan.start.method.kyverno_release, "kyverno/deployments.apps" in cluster.listed)


def test_the_deployments_are_those_beside_the_config_map() -> None:
    """A ConfigMap in another namespace names the namespace of Kyverno."""
    elsewhere = ConfigurationSource(("team", "settings"))
    assert ("1.17", "") == applied(controller("kyverno:v1.17.0", namespace="team"), configuration=elsewhere)


def test_the_right_is_optional_and_in_one_namespace() -> None:
    """It is not needed if the user names the release."""
    cluster = FakeCluster([TEAM, policy("true", resources=("configmaps",))], kinds=(*KINDS, *KYVERNO))
    given = Options(languages=with_options(KyvernoOptions(version="1.18")))
    rights = [
        [(need.optional, need.namespace) for need in list_permissions(cluster, options).rights if "release" in need.why]
        for options in (Options(), given)
    ]
    assert [[(True, "kyverno")], []] == rights


def test_the_installed_release_decides() -> None:
    """A policy with a namespace selector has variants since 1.19."""
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team"}}}
    selecting = policy("true", name="selecting", match=selector)
    scans = [scan_of(controller(f"kyverno:v{release}"), selecting) for release in ("1.18.0", "1.19.0")]
    assert [1, 3] == [
        len([binding for binding in scan.start.bindings if binding.policy_name == "selecting"]) for scan in scans
    ]

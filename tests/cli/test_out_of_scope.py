"""What bound policies do not need makes no scan incomplete, and is listed and counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.model.json import as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.cli.repositories import BINDING, LIBRARIES, POLICY, REPOSITORIES, Repository, bound, deployment
from tests.cli.test_scan_from_files import Write
from tests.command import Ran


def outside(ran: Ran) -> tuple[str, ...]:
    """The kinds of what is out of scope, sorted."""
    return tuple(sorted(as_text(dig(item, "kind")) for item in as_list(ran.report["outOfScope"])))


def of_the_library(write: Write, **files: str) -> Path:
    """A folder of policies with these files."""
    for name, text in files.items():
        write(f"lib/{name.replace('__', '.')}", text)
    write("web.yaml", deployment())
    return Path("lib")


@pytest.mark.parametrize("repository", REPOSITORIES.values(), ids=list(REPOSITORIES))
def test_a_repository_is_complete_without_files_of_other_tools(
    assay: Assay, write: Write, repository: Repository
) -> None:
    """Exit code, gaps and what is out of scope, for a policy on Deployments."""
    write("policy.yaml", bound("owner"))
    for name, text in repository.files.items():
        write(f"repository/{name}", text)

    ran = assay("scan", "--from", "repository", "-f", "policy.yaml", "-q", "-o", "json")

    assert (repository.code, repository.gaps, repository.outside) == (
        ran.code,
        len(as_list(ran.report["gaps"])),
        outside(ran),
    )


@pytest.mark.parametrize(
    "library",
    [library for library in LIBRARIES.values() if library.code != 2],
    ids=[n for n in LIBRARIES if "cannot" not in n],
)
def test_a_library_of_policies_works_as_it_is(assay: Assay, write: Write, library: Repository) -> None:
    """Its policies, bindings, params and definitions are used, and the rest is listed."""
    write("web.yaml", deployment())
    for name, text in library.files.items():
        write(f"library/{name}", text)

    ran = assay("scan", "--from", "web.yaml", "-f", "library", "-q", "-o", "json")

    passed = dig(ran.report, "totals", "passed")
    assert (library.code, library.gaps, library.outside, 1) == (
        ran.code,
        len(as_list(ran.report["gaps"])),
        outside(ran),
        passed,
    )


@pytest.mark.parametrize(
    "text",
    [
        LIBRARIES["a policy that cannot be read"].files["b.yaml"],
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nspec: {}\n",
        "kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\n",
        POLICY.format(name="p", params="", expression="true").replace("k8s.io/v1", "k8s.io/v9"),
        POLICY.format(name="p", params="", expression="true").replace("registration.k8s.io", ".k8s.io"),
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec: [1]\n",
        "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nspec: {}\n",
    ],
    ids=["no YAML", "no name", "no version", "unknown version", "unknown group", "not decodable", "Kyverno"],
)
def test_a_policy_that_cannot_be_read_ends_the_command(assay: Assay, write: Write, text: str) -> None:
    """With the exit code 2 and the place, although other files of the folder are passed over."""
    folder = of_the_library(write, a__yaml=bound("owner"), b__yaml=text)

    ran = assay("scan", "--from", "web.yaml", "-f", folder, "-q", "-o", "json")

    assert (2, b"", True) == (ran.code, ran.stdout, "b.yaml, document 1" in ran.stderr)


def test_a_file_that_is_named_itself_must_be_read(assay: Assay, write: Write) -> None:
    """Only the files of a folder are passed over."""
    folder = of_the_library(write, a__yaml=bound("owner"), b__yaml="name: owner\n")

    ran = assay("scan", "--from", "web.yaml", "-f", folder / "a.yaml", "-f", folder / "b.yaml", "-q")

    assert (2, True) == (ran.code, "apiVersion: Required value" in ran.stderr)


def test_policies_in_a_file_of_both_inputs_are_read_once(assay: Assay, write: Write) -> None:
    """`-f` names a folder of the repository that `--from` names."""
    write("repository/policies/owner.yaml", bound("owner"))
    write("repository/web.yaml", deployment())

    ran = assay("scan", "--from", "repository", "-f", "repository/policies", "-q", "-o", "json")

    assert (0, []) == (ran.code, ran.report["gaps"])


def test_the_terminal_counts_what_is_out_of_scope(assay: Assay, write: Write) -> None:
    """In a sentence with the remedy for charts and kustomizations."""
    folder = of_the_library(
        write, a__yaml=bound("owner"), kustomization__yaml="resources: [a.yaml]\n", tests__json="[{}]"
    )

    ran = assay("scan", "--from", "web.yaml", "-f", folder, "-q")

    sentence = (
        "Scope     out of scope: 1 kustomization, 1 document that is no manifest. "
        "Render charts and kustomizations, and scan the output, to evaluate what they make"
    )
    assert sentence in ran.stdout.decode().splitlines()


def test_the_page_about_coverage_lists_what_is_out_of_scope(assay: Assay, write: Write, home: Path) -> None:
    """Place, kind and reason of each item."""
    folder = of_the_library(write, a__yaml=bound("owner"), kustomization__yaml="resources: [a.yaml]\n")

    assay("scan", "--from", "web.yaml", "-f", folder, "-q", "--html", "pages")

    page = (home / "pages" / "coverage.html").read_text()
    assert ("lib/kustomization.yaml, document 1" in page, "kustomize reads this file" in page) == (True, True)


def test_objects_with_generated_names_are_one_note(assay: Assay, write: Write) -> None:
    """They are evaluated like all others."""
    write("policy.yaml", bound("owner", "false"))
    write("a.yaml", deployment().replace("name: web}", "generateName: web-}", 1))

    ran = assay("scan", "--from", "a.yaml", "-f", "policy.yaml", "-q", "-o", "json")

    notes = [note for note in as_list(dig(ran.report, "provenance", "notes")) if "generateName" in as_text(note)]
    names = [dig(finding, "object", "name") for finding in as_list(ran.report["findings"])]
    assert (0, 1, ["web-xxxxx"]) == (ran.code, len(notes), names)


@pytest.mark.parametrize(("value", "code", "refused"), [("", 3, 0), ("env=prod", 0, 1), ("env=dev", 0, 0)])
def test_a_label_of_a_namespace_is_stated_by_a_flag(
    assay: Assay, write: Write, value: str, code: int, refused: int
) -> None:
    """Without the flag, the scan is incomplete, and names the flag."""
    selector = ", matchResources: {namespaceSelector: {matchLabels: {env: prod}}}"
    write("policy.yaml", bound("owner", "false", more=selector))
    write("web.yaml", deployment(namespace="shop"))
    flags = ["--namespace-label", f"shop={value}"] if value else []

    ran = assay("scan", "--from", "web.yaml", "-f", "policy.yaml", "-q", "-o", "json", *flags)

    assert (code, refused) == (ran.code, dig(ran.report, "verdict", "problems", "refused"))
    assert (code == 3) == ("--namespace-label shop=env=VALUE" in str(ran.report["gaps"]))


def test_the_labels_of_namespaces_are_a_key_of_the_configuration(assay: Assay, write: Write) -> None:
    """A list, as the flag is repeatable."""
    selector = ", matchResources: {namespaceSelector: {matchLabels: {env: prod, tier: web}}}"
    write("policy.yaml", bound("owner", "false", more=selector))
    write("web.yaml", deployment(namespace="shop"))
    write("assay.yaml", "namespaceLabel: [shop=env=prod, shop=tier=web]\n")

    ran = assay("scan", "--from", "web.yaml", "-f", "policy.yaml", "-q", "-o", "json")

    assert (0, 1) == (ran.code, dig(ran.report, "verdict", "problems", "refused"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--from", "web.yaml", "--namespace-label", "shop=env"], "write NAMESPACE=KEY=VALUE, such as"),
        (["--from", "web.yaml", "--namespace-label", "=env=prod"], "write NAMESPACE=KEY=VALUE, such as"),
        (
            ["--from", "web.yaml", "--namespace-label", "shop=env=a", "--namespace-label", "shop=env=b"],
            "the key env of namespace shop has another value already",
        ),
        (["--namespace-label", "shop=env=prod"], "--namespace-label needs --from"),
    ],
)
def test_a_malformed_label_is_an_error(assay: Assay, write: Write, flags: list[str], message: str) -> None:
    """With the form of the flag; a live cluster knows its labels."""
    write("web.yaml", deployment())

    ran = assay("scan", *flags, "-q")

    assert (2, True) == (ran.code, message in ran.stderr)


def test_a_binding_of_a_folder_needs_no_policy_beside_it(assay: Assay, write: Write) -> None:
    """A folder of bindings is a folder of policies, too."""
    write("policies/owner.yaml", POLICY.format(name="owner", params="", expression="true"))
    folder = of_the_library(write, binding__yaml=BINDING.format(name="owner", more=""))

    ran = assay("scan", "--from", "web.yaml", "-f", "policies", "-f", folder, "-q", "-o", "json")

    assert (0, ()) == (ran.code, outside(ran))

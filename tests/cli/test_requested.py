"""The simulated request on the command line, previews, and the auditability of policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.model.json import as_list, as_object, as_text, dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map, policy

ONLY_BOB = "request.userInfo.username == 'bob'"


@pytest.fixture
def files(home: Path) -> Path:
    """Two ConfigMaps and a policy that reads the user."""
    folder = home / "cluster"
    folder.mkdir()
    text = "---\n".join([bound("only-bob", expression=ONLY_BOB), config_map("a"), config_map("b")])
    (folder / "all.yaml").write_text(text)
    return folder


def names(report: object) -> list[str]:
    """The names of the objects with findings."""
    return sorted(as_text(dig(finding, "object", "name")) for finding in as_list(dig(report, "findings")))  # type: ignore[arg-type]


@pytest.mark.parametrize(("flags", "expected"), [([], ["a", "b"]), (["--as-user", "bob"], [])])
def test_the_user_can_be_named(assay: Assay, files: Path, flags: list[str], expected: list[str]) -> None:
    """--as-user names the user; the report states the user, and counts dependent outcomes apart."""
    ran = assay("scan", "--from", files, *flags, "-o", "json")
    who = flags[-1] if flags else "assay"
    assert (expected, who, 2) == (
        names(ran.report),
        dig(ran.report, "provenance", "requester", "username"),
        sum(number for number in as_object(ran.report["requester"]).values() if isinstance(number, int)),
    )


def test_groups_uid_and_extra_belong_to_the_user(assay: Assay, home: Path, files: Path) -> None:
    """All of them reach the policy."""
    arguments = (
        "'dev' in request.userInfo.groups && 'ops' in request.userInfo.groups && request.userInfo.uid == 'u-1' && "
        "request.userInfo.extra['scopes'] == ['a', 'b']"
    )
    (home / "policy.yaml").write_text(bound("asking", expression=arguments))
    user = ["--as-user", "bob", "--as-user-group", "dev", "--as-user-group", "ops", "--as-user-uid", "u-1"]
    extra = ["--as-user-extra", "Scopes=a", "--as-user-extra", "scopes=b"]
    ran = assay("scan", "--from", files, "-f", "policy.yaml", "--policy", "asking", *user, *extra, "-o", "json")
    assert ([], 2) == (names(ran.report), dig(ran.report, "totals", "passed"))


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--as-user-group", "dev"], "--as-user-group needs --as-user"),
        (["--as-user-uid", "1"], "--as-user-uid needs --as-user"),
        (["--as-user-extra", "a=b"], "--as-user-extra needs --as-user"),
        (["--as-user", "bob", "--as-user-extra", "a"], "--as-user-extra: write KEY=VALUE"),
        (["--operation", "delete"], "'delete' is not one of"),
        (["--policy", "only-*", "--assume-bound", "new"], "--assume-bound names policy new, which is neither in"),
    ],
)
def test_an_impossible_request_is_a_usage_error(assay: Assay, files: Path, flags: list[str], text: str) -> None:
    """The message is one sentence, and the exit code is 2."""
    ran = assay("scan", "--from", files, *flags)
    assert 2 == ran.code
    assert text in " ".join(ran.stderr.split())


def test_a_policy_that_is_left_out_cannot_be_previewed(assay: Assay, home: Path, files: Path) -> None:
    """The policy would not be evaluated, and the report would look clean."""
    (home / "new.yaml").write_text(policy("new"))
    ran = assay("scan", "--from", files, "-f", "new.yaml", "--policy", "only-bob", "--assume-bound", "new")
    assert 2 == ran.code
    assert "--assume-bound new: --policy leaves that policy out; name it there as well" in " ".join(ran.stderr.split())


def test_the_operation_can_be_chosen(assay: Assay, files: Path) -> None:
    """A policy that names only CREATE does not apply to updates, and is listed with that reason."""
    ran = assay("scan", "--from", files, "--operation", "update", "-o", "json")
    (section,) = as_list(ran.report["policies"])
    assert ([], 0, "update") == (names(ran.report), ran.code, dig(ran.report, "provenance", "operation"))
    assert ["dependsOnRequester", "notAuditable"] == dig(section, "auditability")
    assert "its rules name only CREATE" in as_text(dig(section, "notAuditable"))


def test_a_preview_leaves_no_trace_in_the_history(assay: Assay, home: Path, files: Path) -> None:
    """Only the scan that previews shows it; later scans and bound policies are not affected."""
    (home / "new.yaml").write_text(policy("new"))
    flags = ["--from", files, "--cluster-name", "c", "-o", "json"]
    first = assay("scan", *flags)
    preview = assay("scan", *flags, "-f", "new.yaml", "--assume-bound", "new=Warn")
    last = assay("scan", *flags)

    assert [(2, 0), (0, 2), (0, 0)] == [
        (dig(ran.report, "changes", "new"), dig(ran.report, "changes", "preview")) for ran in (first, preview, last)
    ]
    assert [(0, 0), (0, 0), (0, 0)] == [
        (dig(ran.report, "changes", "resolved"), dig(ran.report, "changes", "unchecked"))
        for ran in (first, preview, last)
    ]
    assert [2, 4, 2] == [len(as_list(ran.report["findings"])) for ran in (first, preview, last)]
    assert {"open"} == {as_text(dig(finding, "status")) for finding in as_list(last.report["findings"])}


def test_a_previewed_finding_can_be_explained(assay: Assay, home: Path, files: Path) -> None:
    """This works later too, because the scan with the finding is stored."""
    (home / "new.yaml").write_text(policy("new"))
    ran = assay("scan", "--from", files, "-f", "new.yaml", "--assume-bound", "new", "-o", "json")
    finding = next(finding for finding in as_list(ran.report["findings"]) if dig(finding, "policy") == "new")
    assay("scan", "--from", files)
    text = assay("explain", as_text(dig(finding, "id"))).stdout.decode()
    assert "the policy is not bound, and the finding has no history." in text


def test_policies_are_listed_with_their_auditability(assay: Assay, files: Path) -> None:
    """`assay policies` lists it, and `assay explain` explains it and names the checks."""
    assay("scan", "--from", files)
    assert "only-bob  medium    depends on requester" in assay("policies").stdout.decode()
    text = assay("explain", "only-bob").stdout.decode()
    assert "Auditability: depends on requester\n" in text
    assert "validations[0]: Reads the user or the options of the request." in text
    assert "2 of its outcomes depend on the user: they hold for assay and may differ for other users." in text


def test_a_finding_that_depends_on_the_user_is_marked(assay: Assay, files: Path) -> None:
    """The explanation names the user."""
    ran = assay("scan", "--from", files, "-o", "json")
    finding = as_list(ran.report["findings"])[0]
    text = assay("explain", as_text(dig(finding, "id"))).stdout.decode()
    assert True is dig(finding, "dependsOnRequester")
    assert "The check depends on requester (here: assay): Reads the user" in text

"""Which history a scan continues, as users see it: names, folders, and the cluster that `last` chose."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from scanner.model.json import as_list, dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map

Write = Callable[[str, str], Path]


@pytest.fixture
def folders(write: Write) -> tuple[str, str]:
    """Two unrelated folders of one name; only the first has an object that breaks the policy."""
    write("a/manifests/all.yaml", f"{config_map('one')}---\n{bound('strict', expression='has(object.data)')}")
    write(
        "b/manifests/all.yaml",
        f"{config_map('two')}data: {{a: b}}\n---\n{bound('strict', expression='has(object.data)')}",
    )
    return "a/manifests", "b/manifests"


def test_two_folders_of_one_name_have_two_histories(assay: Assay, folders: tuple[str, str]) -> None:
    """The scan of the second resolves nothing of the first, and states once that both have the same name."""
    first, second, third = (assay("scan", "--from", folder, "-o", "json", "-q") for folder in (*folders, folders[1]))

    assert (1, 0) == tuple(
        dig(ran.report, "changes", section) for ran, section in ((first, "new"), (second, "resolved"))
    )
    assert "is another cluster that is shown as manifests" in second.stderr
    assert ("", "") == (first.stderr, third.stderr)


def test_an_ambiguous_name_is_a_usage_error(assay: Assay, folders: tuple[str, str], home: Path) -> None:
    """The list has the identity of each cluster, and each entry is accepted as a name."""
    for folder in folders:
        assay("scan", "--from", folder, "-q")

    ran = assay("report", "--cluster-name", "manifests")
    chosen = assay("report", "--cluster-name", f"folder:{home}/a/manifests")

    assert (2, b"") == (ran.code, ran.stdout)
    assert f"Name one of: folder:{home}/a/manifests, folder:{home}/b/manifests" in ran.stderr
    assert 0 == chosen.code


@pytest.mark.parametrize("command", [["report"], ["policies"], ["explain", "strict"]])
def test_last_says_which_cluster_it_chose(assay: Assay, folders: tuple[str, str], command: list[str]) -> None:
    """If the database has several, and the user named none."""
    assay("scan", "--from", folders[0], "--cluster-name", "shop", "-q")
    alone = assay(*command)
    assay("scan", "--from", folders[1], "--cluster-name", "depot", "-q")
    several, named = assay(*command), assay(*command, "--cluster-name", "shop")

    sentence = "assay: the last scan is of depot; the database has scans of shop, depot: choose with --cluster-name\n"
    assert ("", sentence, "") == (alone.stderr, several.stderr, named.stderr)


def test_a_name_of_two_clusters_is_a_usage_error(assay: Assay, folders: tuple[str, str]) -> None:
    """The name of a live cluster is no name for files; the message names the remedy, and the run is recorded."""
    assay("scan", "--from", folders[0], "--cluster-name", "prod", "--db", "assay.db", "-q")
    with closing(sqlite3.connect("assay.db")) as connection, connection:
        connection.execute("UPDATE clusters SET observed = 'uid:1234'")

    ran = assay("scan", "--from", folders[0], "--cluster-name", "prod", "--db", "assay.db", "-q")
    restored = assay(
        "scan", "--from", folders[0], "--cluster-name", "prod", "--restored-cluster", "--db", "assay.db", "-q"
    )

    assert (2, b"") == (ran.code, ran.stdout)
    assert "it was scanned with the kube-system UID 1234, and this one has the folder" in ran.stderr
    assert 0 == restored.code


def test_a_restored_cluster_needs_no_name(assay: Assay, folders: tuple[str, str]) -> None:
    """A cluster that was restored from a backup has the UID of before, and its history goes on without a name."""
    ran = assay("scan", "--from", folders[0], "--restored-cluster", "-q")

    assert 0 == ran.code


def test_a_folder_keeps_its_history_wherever_the_user_stands(
    assay: Assay, folders: tuple[str, str], monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """The absolute path counts."""
    assay("scan", "--from", folders[0], "-q")
    monkeypatch.chdir(home / "a")
    ran = assay("scan", "--from", "../a/manifests", "-o", "json", "-q")

    assert 0 == dig(ran.report, "changes", "new")


def test_files_under_a_given_name_may_move(assay: Assay, folders: tuple[str, str]) -> None:
    """As in CI, where each run has a new folder."""
    assay("scan", "--from", folders[0], "--cluster-name", "shop", "-q")
    shutil.move("a", "elsewhere")
    ran = assay("scan", "--from", "elsewhere/manifests", "--cluster-name", "shop", "-o", "json", "-q")

    assert (0, 0) == (ran.code, dig(ran.report, "changes", "new"))


@pytest.mark.long
def test_a_history_is_renamed_and_continued(assay: Assay, folders: tuple[str, str]) -> None:
    """The command prints the flag of later scans, which find nothing new; the note of a scan with a new name has named it."""
    assay("scan", "--from", folders[0], "--cluster-name", "shop", "-q")
    before = dig(assay("report", "-o", "json").report, "findings")
    ran = assay("db", "rename-cluster", "shop", "store front")
    again = assay("scan", "--from", folders[0], "--cluster-name", "store front", "-o", "json", "-q")

    assert (0, "") == (ran.code, ran.stderr)
    assert "Renamed the history of shop to store front: 1 scan.\n" in ran.stdout.decode()
    assert "Scans continue it with this flag: --cluster-name 'store front'\n" in ran.stdout.decode()
    assert (0, 0) == (dig(again.report, "changes", "new"), dig(again.report, "changes", "resolved"))
    assert "" == again.stderr
    assert len(as_list(before)) == len(as_list(dig(again.report, "findings")))
    assert "store front" in assay("scans").stdout.decode()


def test_the_note_of_a_new_name_names_the_command_that_carries_the_history_over(
    assay: Assay, folders: tuple[str, str]
) -> None:
    """Files have no UID: the folder is the mark."""
    assay("scan", "--from", folders[0], "--cluster-name", "shop", "-q")
    ran = assay("scan", "--from", folders[0], "--cluster-name", "depot", "-q")

    assert "end this scan and run: assay db rename-cluster shop depot\n" in ran.stderr


def test_renaming_to_the_same_name_changes_nothing(assay: Assay, folders: tuple[str, str]) -> None:
    """The exit code is 0: a script may run the command twice."""
    assay("scan", "--from", folders[0], "--cluster-name", "shop", "-q")
    ran = assay("db", "rename-cluster", "shop", "shop")

    assert (0, b"The history is named shop already: nothing changed.\n", "") == (ran.code, ran.stdout, ran.stderr)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("depot", "new"), "assay: There is no cluster 'depot' in this database: it has shop.\n"),
        (("shop", ""), "The new name is empty"),
        (("shop", "a\tb"), r"The new name 'a\tb' has a control character"),
    ],
)
def test_a_rename_that_cannot_be_made_is_a_usage_error(
    assay: Assay, folders: tuple[str, str], arguments: tuple[str, str], sentence: str
) -> None:
    """Nothing is printed on stdout."""
    assay("scan", "--from", folders[0], "--cluster-name", "shop", "-q")
    ran = assay("db", "rename-cluster", *arguments)

    assert (2, b"") == (ran.code, ran.stdout)
    assert sentence in ran.stderr

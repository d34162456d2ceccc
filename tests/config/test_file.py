"""The file: where it is found, what it gives, and how hostile files end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from scanner.config.configuration import list_errors, read
from scanner.config.file import find_file
from scanner.config.file_reader import read_file
from scanner.config.setting import FileKey, Setting, ValueType
from scanner.config.unflagged import UNFLAGGED_KEYS
from scanner.errors import UsageError
from scanner.posture.owners import OwnerKey
from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.posture.severity import DescriptionOverride, Severity

SETTINGS = (
    Setting("db", "--db"),
    Setting("failOn", "--fail-on", many=True, choices=("new", "deny")),
    Setting("chunkSize", "--chunk-size", ValueType.INTEGER, least=1, default=500),
    Setting("schedule.cron", "--expect"),
    Setting("schedule.timeZone", "--time-zone"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of a file."""
    return tmp_path / "assay.yaml"


def problems(file: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """Every error, with the name of the file alone."""
    found = list_errors(SETTINGS, str(file), environment or {})
    return [str(error).replace(f"{file.parent}/", "") for error in found]


@pytest.mark.parametrize(
    ("named", "variable", "present", "expected"),
    [
        ("x", "y", ("here", "home"), "x"),
        ("", "y", ("here", "home"), "y"),
        ("", "", ("here", "home"), "here/assay.yaml"),
        ("", "", ("home",), "home/assay/assay.yaml"),
        ("", "", (), None),
    ],
)
def test_one_file_is_found(tmp_path: Path, named: str, variable: str, present: tuple[str, ...], expected: str) -> None:
    """The flag, the variable, the working directory, the configuration of the user."""
    for folder, path in (("here", "here/assay.yaml"), ("home", "home/assay/assay.yaml")):
        (tmp_path / path).parent.mkdir(parents=True)
        if folder in present:
            (tmp_path / path).touch()
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "home"), **({"ASSAY_CONFIG": variable} if variable else {})}
    found = find_file(named, environment, tmp_path / "here")
    assert expected == (None if found is None else str(found).removeprefix(f"{tmp_path}/"))


def test_the_configuration_of_the_user_is_below_home(tmp_path: Path) -> None:
    """~/.config is the default of XDG_CONFIG_HOME."""
    (tmp_path / ".config/assay").mkdir(parents=True)
    (tmp_path / ".config/assay/assay.yaml").touch()
    assert tmp_path / ".config/assay/assay.yaml" == find_file("", {"HOME": str(tmp_path)}, tmp_path)


def test_an_empty_variable_names_no_file(tmp_path: Path) -> None:
    """A script that forgets the name must not scan without its configuration."""
    with pytest.raises(UsageError, match="ASSAY_CONFIG is empty: name a file, or unset the variable"):
        find_file("", {"ASSAY_CONFIG": ""}, tmp_path)


def test_a_variable_comes_before_the_file(file: Path) -> None:
    """And a default after both."""
    file.write_text("db: of the file\nfailOn: [new]\n")
    values = read(SETTINGS, str(file), {"ASSAY_DB": "of the variable"}).values
    assert ("of the variable", "ASSAY_DB") == (values["db"].value, values["db"].place)
    assert (("new",), f"{file}, line 2, column 9") == (values["failOn"].value, values["failOn"].place)
    assert (500, "") == (values["chunkSize"].value, values["chunkSize"].place)


def test_every_error_is_found(file: Path) -> None:
    """Unknown keys have the nearest key; errors are in the order of their places."""
    file.write_text("chunkSze: 5\nfailOn: new\nschedule: {cron: 17, zone: x}\nzzz: 1\nowners:\n")
    assert [
        "the environment variable ASSAY_FAILON is unknown: unset it, or correct its name. Did you mean ASSAY_FAIL_ON?",
        "ASSAY_CHUNK_SIZE: write 1 or more",
        "assay.yaml, line 1, column 1: unknown key chunkSze. Did you mean chunkSize?",
        "assay.yaml, line 2, column 9: failOn: must be a list: write [a, b]",
        "assay.yaml, line 3, column 18: schedule.cron: must be a string, not a number: quote it",
        "assay.yaml, line 3, column 22: unknown key schedule.zone. Did you mean timeZone?",
        "assay.yaml, line 4, column 1: unknown key zzz. `assay config view` lists the keys.",
        "assay.yaml, line 5, column 8: owners: has no value: write one, or remove the key",
    ] == problems(file, {"ASSAY_FAILON": "x", "ASSAY_CHUNK_SIZE": "0"})


def test_the_first_error_ends_a_command(file: Path) -> None:
    """With exit code 2."""
    file.write_text("b: 1\na: 1\n")
    with pytest.raises(UsageError, match="line 1, column 1: unknown key b"):
        read(SETTINGS, str(file), {})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            b"a: &a [x]\nb: *a\n",
            "assay.yaml, line 2, column 4: an alias is not supported: quote a value that begins with *",
        ),
        (b"db: !!binary x\n", "assay.yaml, line 1, column 5: a tag is not supported"),
        (b"db: !x y\n", "assay.yaml, line 1, column 5: a tag is not supported"),
        (b"db: a\x00b\n", "assay.yaml, line 1, column 6: the character U+0000 is not allowed"),
        (b"db: \xff\n", "assay.yaml, line 1, column 5: a byte is not UTF-8"),
        (b"db: a\ndb: b\n", "assay.yaml, line 2, column 1: the key db is repeated"),
        (b"[a]\n", "assay.yaml, line 1, column 1: must be an object, not a list"),
        (b"db: [\n", "assay.yaml, line 2, column 1: this is not YAML"),
        (b"db: a\n---\ndb: b\n", "assay.yaml, line 3, column 1: the file has a second document: write one"),
        (b"db: " + b"[" * 40, "assay.yaml, line 1, column 36: the document is nested deeper than 32 levels"),
        (b"#" * (50 << 20), "cannot be read: it has more than 8 MiB"),
    ],
    ids=["alias", "tag", "own tag", "NUL", "not UTF-8", "repeated", "list", "no YAML", "two", "nested", "50 MB"],
)
def test_a_hostile_file_is_an_error(file: Path, content: bytes, expected: str) -> None:
    """With file, line and column."""
    file.write_bytes(content)
    with pytest.raises(UsageError) as error:
        read(SETTINGS, str(file), {})
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [("", "is no file"), ("missing.yaml", "there is no file or folder"), ("-", "the configuration - is no file")],
)
def test_a_path_without_a_file_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    """Standard input is for manifests and policies."""
    with pytest.raises(UsageError, match=message):
        read_file(Path(name) if name == "-" else tmp_path / name, SETTINGS)


@pytest.mark.parametrize("content", ["", "# nothing\n", "---\n"])
def test_an_empty_file_has_defaults(file: Path, content: str) -> None:
    """A file with comments alone is what `config init` begins with."""
    file.write_text(content)
    assert {} == read_file(file, SETTINGS).values


def test_the_digest_covers_no_secret(file: Path) -> None:
    """Two files that differ in a password have one digest: a digest cannot confirm a guess."""
    file.write_text("db: postgresql://bob:hunter2@db/assay\n")
    first = read_file(file, SETTINGS).digest
    file.write_text("db: postgresql://bob:swordfish@db/assay # a comment\n")
    assert first == read_file(file, SETTINGS).digest
    file.write_text("db: postgresql://bob:swordfish@other/assay\n")
    assert first != read_file(file, SETTINGS).digest


def test_posture_has_keys_without_a_flag(file: Path) -> None:
    """Owners in their order, descriptions, and rules of waivers."""
    file.write_text(
        "owners:\n- {annotation: a/b, place: namespace}\n- {label: team}\n"
        "descriptions:\n- {policy: 'x-*', severity: high, title: X}\n"
        "longestWaiverDays: 90\nexpiringWaiverDays: 0\n"
    )
    posture = read(SETTINGS, str(file), {}).posture
    assert posture is not None
    assert (
        OwnerKey("namespace", "annotation", "a/b"),
        OwnerKey("object", "label", "team"),
        OwnerKey("workload", "label", "team"),
        OwnerKey("namespace", "label", "team"),
    ) == posture.owners
    assert (DescriptionOverride("x-*", severity=Severity.HIGH, title="X"),) == posture.descriptions
    assert (90, 0) == (posture.longest_waiver_days, posture.expiring_waiver_days)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("owners: {label: a}", "line 1, column 9: owners: must be a list, not an object"),
        ("owners: [{}]", "line 1, column 10: owners[0]: must have a label or an annotation, and not both"),
        (
            "owners: [{label: a, annotation: b}]",
            "column 10: owners[0]: must have a label or an annotation, and not both",
        ),
        ("owners: [{label: a, place: pod}]", "owners[0].place: must be one of object, workload, namespace"),
        ("owners: [{lable: a}]", "unknown field owners[0].lable. Did you mean label?"),
        ("descriptions: [{severity: high}]", "descriptions[0]: has no policy: write the name of a policy"),
        ("descriptions: [{policy: a, severity: hihg}]", "column 38: descriptions[0].severity: must be one of"),
        ("longestWaiverDays: 0", "longestWaiverDays: must be 1 or more"),
        ("expiringWaiverDays: soon", "expiringWaiverDays: must be a whole number, not a string"),
    ],
)
def test_a_wrong_key_of_posture_is_an_error(file: Path, text: str, expected: str) -> None:
    """With the place and the field."""
    file.write_text(text)
    [problem] = problems(file)
    assert expected in problem


@pytest.mark.parametrize("key", UNFLAGGED_KEYS, ids=lambda key: key.key)
def test_defaults_and_examples_without_a_flag_are_valid(file: Path, key: FileKey) -> None:
    """The default that is shown is the one that counts, and the example in the help is accepted."""
    file.write_text(f"{key.key}: {key.example}\n")
    assert [] == problems(file)
    if key.default is not None:
        file.write_text(f"{key.key}: {json.dumps(key.default)}\n")
        assert DEFAULT_SETTINGS == read(SETTINGS, str(file), {}).posture

"""No reader of YAML or JSON repeats a value: its error has the file, the line, the column and the problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scanner.cluster.files.manifests import read_documents
from scanner.cluster.requests.credentials import load_credentials
from scanner.config.file_reader import read_file
from scanner.config.setting import Setting, ValueType
from scanner.documents.controls import read_frameworks
from scanner.documents.fleet import read_fleet
from scanner.documents.waivers import read_config_map_waivers, read_waivers
from scanner.errors import AssayError
from scanner.model.population import DEFAULT_KEYS
from scanner.model.waiver import LabelledConfigMap
from tests.cli.conftest import Assay

CANARY = "hunter2canary"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  password: "
SPOILED = {
    "an alias": f"{SECRET}*{CANARY}\n",
    "an alias of itself": f"{SECRET}&{CANARY} [*{CANARY}]\n",
    "two anchors": f"{SECRET}&{CANARY} x\n  b: &{CANARY} y\n",
    "a tag": f"{SECRET}!{CANARY} x\n",
    "a handle": f"{SECRET}!{CANARY}!x y\n",
    "a number that is none": f"{SECRET}!!int {CANARY}\n",
    "bytes that are none": f"{SECRET}!!binary {CANARY}*\n",
    "a truth that is none": f"{SECRET}!!bool {CANARY}\n",
    "a quote without an end": f'{SECRET}"{CANARY}\n',
    "an escape that is none": f'{SECRET}"\\q{CANARY}"\n',
    "a second colon": f"{SECRET}{CANARY}: x\n",
    "a sign at the beginning": f"{SECRET}@{CANARY}\n",
    "a directive": f"%{CANARY} 1\n{SECRET}x\n",
    "a bracket": f"{SECRET}[{CANARY}\n",
    "a list in braces": f"{SECRET}{{{CANARY}: [}}\n",
    "a merge of a text": f"{SECRET}x\n  <<: {CANARY}\n",
    "a key without a space": f"{{password:{CANARY}}}\n",
    "a key with a blank": f"'password {CANARY}': x\n",
    "a list": f"[{CANARY}]\n",
    "a text": f"{CANARY}\n",
    "a version": f"apiVersion: {CANARY}/a/b\nkind: Secret\nmetadata: {{name: a}}\n",
    "a label": f'apiVersion: v1\nkind: Secret\nmetadata: {{name: a, labels: {{"password:{CANARY} ": 1}}}}\n',
    "a name that is none": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: [{CANARY}]}}\n",
    "two equal keys": f"'a {CANARY}': 1\n'a {CANARY}': 2\n",
    "a tab": f"{SECRET}\n\t{CANARY}\n",
    "JSON without a comma": f'{{"data": {{"password": "{CANARY}" "b": 1}}}}',
    "JSON without quotes": f'{{"data": {{"password": {CANARY}}}, "a": ]}}',
    "JSON that is cut": f'{{"data": {{"password": "{CANARY}',
    "JSON and more": f'{{"a": 1}}\n{{"b": 2}}\n{{"password": "{CANARY}" x}}',
    "a kubeconfig": f"apiVersion: v1\nkind: Config\ncurrent-context: [{CANARY}]\nusers: {CANARY}\n",
    "a number for a context": f"current-context: a\ncontexts: {{a: {CANARY}}}\nclusters: [{CANARY}]\nusers: 7\n",
}
SETTINGS = (
    Setting("quiet", "--quiet", ValueType.BOOLEAN),
    Setting("qps", "--qps", ValueType.NUMBER, least=0, most=5),
    Setting("chunkSize", "--chunk-size", ValueType.INTEGER, least=1),
    Setting("failOn", "--fail-on", many=True, choices=("new", "deny")),
    Setting("output", "--output", choices=("table", "json")),
    Setting("db", "--db"),
)
WRONG_VALUES = {
    "quiet": CANARY,
    "qps": CANARY,
    "chunkSize": CANARY,
    "failOn": f"[{CANARY}]",
    "output": CANARY,
    "db": f"{{password: {CANARY}}}",
    "databaseLimit": CANARY,
    "longestWaiverDays": CANARY,
    "owners": f"[{{label: a, place: {CANARY}}}]",
    "descriptions": f"[{{policy: a, severity: {CANARY}}}]",
    "tokens": f"[{{name: '{CANARY} ', sha256: {CANARY}}}]",
    "notifications": f"[{{name: a, url: '{CANARY}', keyVariable: x}}]",
}


def _from(path: Path) -> None:
    _, gaps = read_documents(path)
    for gap in gaps:
        raise AssayError(f"{gap.where}: {gap.why}")


def _config(path: Path) -> None:
    for error in read_file(path, SETTINGS).errors:
        raise error


def _config_map(path: Path) -> None:
    data = LabelledConfigMap("assay", "waivers", {"a.yaml": path.read_text()})
    for fault in read_config_map_waivers([data], "assay", DEFAULT_KEYS).faults:
        raise AssayError(fault)


READERS: dict[str, Callable[[Path], object]] = {
    "--from and -f": _from,
    "--config": _config,
    "--waivers": lambda path: read_waivers(path, None),
    "waivers in a ConfigMap": _config_map,
    "--controls": lambda path: read_frameworks([path], languages=["CEL"]),
    "--fleet": read_fleet,
    "kubeconfig": lambda path: load_credentials(str(path), ""),
}


def refused(reader: str, path: Path) -> Iterator[str]:
    """The error of a reader, if it has one."""
    try:
        READERS[reader](path)
    except AssayError as error:
        yield str(error)


@pytest.mark.parametrize("spoiled", SPOILED)
def test_no_error_of_any_reader_has_a_value(tmp_path: Path, spoiled: str) -> None:
    """Each document is refused by some of the readers, and by none with its value."""
    path = tmp_path / "secret.yaml"
    path.write_text(SPOILED[spoiled])
    messages = [message for reader in READERS for message in refused(reader, path)]
    assert messages
    assert [] == [message for message in messages if CANARY in message]


@pytest.mark.parametrize("key", WRONG_VALUES)
def test_no_error_of_the_configuration_has_a_value(tmp_path: Path, key: str) -> None:
    """A password may stand under the key of another setting; the message says what to write."""
    path = tmp_path / "assay.yaml"
    path.write_text(f"{key}: {WRONG_VALUES[key]}\n")
    [message] = refused("--config", path)
    assert (f"{path}, line 1, column ", False) == (message[: len(f"{path}, line 1, column ")], CANARY in message)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("apiVersion", CANARY),
        ("kind", CANARY),
        ("until", CANARY),
        ("workload", f"'{CANARY}/ {CANARY}'"),
        ("checkDigest", CANARY),
        ("approvedBy", f"<{CANARY}>"),
        ("ticket", f"[{CANARY}]"),
    ],
)
def test_no_error_of_a_waiver_has_a_value(tmp_path: Path, key: str, value: str) -> None:
    """Nor one of its fields."""
    spec = {"policy": "p", "check": "c", "reason": "r", "requestedBy": "a", "approvedBy": "b", "until": "2026-01-01"}
    head = {"apiVersion": "assay.dev/v1alpha1", "kind": "Waiver"} | (
        {key: value} if key in ("apiVersion", "kind") else {}
    )
    spec |= {} if key in head else {key: value}
    path = tmp_path / "waiver.yaml"
    fields = "".join(f"  {name}: {text}\n" for name, text in spec.items())
    path.write_text(
        "".join(f"{name}: {text}\n" for name, text in head.items()) + f"metadata: {{name: a}}\nspec:\n{fields}"
    )
    [message] = refused("--waivers", path)
    assert ("waiver.yaml, line ", False) == (message.removeprefix(f"{tmp_path}/")[:18], CANARY in message)


def test_a_malformed_secret_is_named_by_file_line_and_column(assay: Assay, home: Path) -> None:
    """In the report, on stderr and in the database, which have the gap."""
    (home / "in").mkdir()
    (home / "in" / "secret.yaml").write_text(f"{SECRET}*{CANARY}\n")
    ran = assay("scan", "--from", "in", "--db", "assay.db", "--allow-empty", "-o", "json")
    printed = [ran.stdout, ran.stderr.encode(), *(path.read_bytes() for path in home.glob("assay.db*"))]
    assert b"line 5, column 13: unknown anchor referenced: quote a value that begins with *" in ran.stdout
    assert [] == [data for data in printed if CANARY.encode() in data]


@pytest.mark.parametrize("name", ["ASSAY_QUIET", "ASSAY_QPS", "ASSAY_FAIL_ON", "ASSAY_REQUEST_TIMEOUT", "ASSAY_AT"])
def test_no_error_of_a_variable_has_its_value(assay: Assay, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """It says which variable to correct, and how."""
    monkeypatch.setenv(name, CANARY)
    ran = assay("config", "check")
    assert (2, True, False) == (ran.code, name in ran.stderr, CANARY in ran.stdout.decode() + ran.stderr)

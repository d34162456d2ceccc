"""Lists and explanations keep to the width of a terminal, and nothing is wrapped or cut elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import orjson
import pytest
from rich.cells import cell_len

from scanner.cli.terminal import stdout
from scanner.report.text.printing import console_of, print_hanging, text_of
from scanner.report.text.screen import Color
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_explain import Write
from tests.cli.test_screen import drawn, seen
from tests.cli.test_waivers import waiver

WIDTHS = ("40", "80", "120")
LONG = "a-policy-with-a-long-name-that-says-what-it-wants-from-every-object"
COMMANDS = {
    "policies": ("policies",),
    "findings": ("findings",),
    "problems": ("findings", "--problems"),
    "a policy": ("explain", LONG),
    "a problem": ("explain", "PROBLEM"),
    "a finding": ("explain", "FINDING"),
    "an object": ("explain", "ConfigMap/web"),
    "waivers": ("waiver", "check", "w.yaml"),
    "a waiver": ("waiver", "explain", "FINDING"),
    "scans": ("scans",),
}
Run = Callable[..., str]


@pytest.fixture
def run(assay: Assay, write: Write) -> Run:
    """Run one of the commands after a scan of objects with long, wide and ordinary names."""
    names = ["web", "n" * 200, "a.very.long.name.with.dots.in.it.which.no.column.has.room.for"]
    objects = [config_map(name) for name in names]
    long = bound(LONG, expression="object.metadata.name == 'no object has this name' || has(object.data.key)")
    write("all.yaml", "---\n".join([*objects, bound("strict", message="容器に制限がありません" * 12), long]))
    write("w.yaml", waiver("a-waiver-with-a-long-name", "namespace: shop", "workload: ConfigMap/web", policy=LONG))
    assay("scan", "--from", "all.yaml", "-q")
    finding = orjson.loads(assay("findings", "-o", "json", "--policy", LONG).stdout)["findings"][0]
    ids = {"PROBLEM": finding["problem"], "FINDING": finding["id"]}

    def ran(*arguments: str) -> str:
        done = assay(*(ids.get(argument, argument) for argument in arguments))
        assert "" == done.stderr
        return done.stdout.decode()

    return ran


def test_the_number_of_a_document_stands_beside_its_noun() -> None:
    """A place in a file is never broken there."""
    out = StringIO()
    console = console_of(out, {"COLUMNS": "40"}, Color.NEVER)
    print_hanging(console, "", text_of(console, "admitted: Pod shop/web  all-of-it.yaml, document 12"))
    assert ["admitted: Pod shop/web  all-of-it.yaml,", "document 12"] == out.getvalue().splitlines()


@pytest.mark.long
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_no_line_is_wider_than_the_terminal(
    run: Run, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 40, 80 and 120 columns; at each of them every word is there."""
    piped = run(*arguments)
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", width)
        printed = run(*arguments)

        assert [] == [line for line in printed.splitlines() if cell_len(line) > int(width)]
        assert letters(piped) <= letters(printed)


def letters(text: str) -> set[str]:
    """The words of a text that no width breaks."""
    return {word for word in text.split() if word.isalnum() and len(word) < 16}


@pytest.mark.long
@pytest.mark.parametrize("name", ["policies", "findings", "problems", "waivers", "scans"])
def test_a_pipe_has_every_text_in_whole(run: Run, name: str) -> None:
    """Each row of a list is one line, and no name is cut."""
    arguments = COMMANDS[name]

    printed = run(*arguments)

    lines = {"findings": 7, "policies": 3, "waiver": 4, "scans": 2}
    assert lines[arguments[0]] == len(printed.splitlines())
    assert "…" not in printed


def test_a_real_terminal_has_its_own_width(run: Run, home: Path) -> None:
    """Without COLUMNS."""
    run("scans")

    lines = seen(drawn(home, 40, "findings"))

    assert "FINDING · STATUS · SINCE · WOULD BE" == lines[0]
    assert max(map(cell_len, lines)) <= 40


def test_the_python_of_a_policy_is_never_wrapped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapped line would be another program."""
    piped = run("explain", LONG, "--python")
    monkeypatch.setenv("COLUMNS", "40")

    assert piped == run("explain", LONG, "--python")


def test_json_is_never_wrapped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document is for programs."""
    piped = run("waiver", "check", "w.yaml", "-o", "json")
    monkeypatch.setenv("COLUMNS", "40")

    assert piped == run("waiver", "check", "w.yaml", "-o", "json")


HEAD = ("ALLOWED", "VERB", "NEEDED FOR")
ROW = ("yes", "list", "the objects of a policy with a name")


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        ("60", ["ALLOWED  VERB  NEEDED FOR", "yes      list  the objects of a policy with a name"]),
        (
            "40",
            ["ALLOWED  VERB  NEEDED FOR", "yes      list  the objects of a policy", "               with a name"],
        ),
        ("30", ["ALLOWED · VERB · NEEDED FOR", "yes · list", "  the objects of a policy with", "  a name"]),
    ],
)
def test_a_table_changes_its_form_with_the_width(
    width: str, lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns, columns of which the last is wrapped, or the cells of each row one after the other."""
    monkeypatch.setenv("COLUMNS", width)

    stdout.table(HEAD, [ROW])

    assert lines == capsys.readouterr().out.splitlines()

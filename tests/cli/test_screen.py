"""The summary on a real terminal, at the widths of a narrow window, a usual one and a wide one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import termios
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_explain import Write
from tests.cli.test_process import read
from tests.cli.test_waivers import waiver
from tests.command import ASSAY, SECONDS, environment
from tests.store.databases import database

WIDTHS = [60, 80, 120]
_ESCAPE = re.compile(r"\x1b\[[0-9;]*[mK]")
_LIVE = re.compile(r"[^\n]*\r\x1b\[K")


@pytest.fixture
def cluster(write: Write) -> Path:
    """The folder of the cluster in the home of a user."""
    return written(write)


def written(write: Write) -> Path:
    """A folder with objects of long, wide and ordinary names, and policies that they violate."""
    names = ["web", "n" * 200, "a.very.long.name.with.dots.in.it.which.no.column.has.room.for"]
    write("cluster/objects.yaml", "---\n".join(config_map(name) for name in names))
    write("cluster/strict.yaml", bound("strict", message="容器に制限がありません" * 12))
    write("cluster/long.yaml", bound("a-policy-with-a-long-name-that-says-what-it-wants-from-every-object"))
    write("cluster/fine.yaml", bound("fine", expression="true"))
    write("cluster/broken.yaml", "a: [")
    return Path("cluster")


def drawn(home: Path, width: int, *arguments: str | Path, **variables: str) -> str:
    """Everything that a command writes on a terminal of this width, which shows its standard output and its messages."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    settings = environment(home, {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **variables})
    with subprocess.Popen(
        [ASSAY, *arguments], cwd=home, env=settings, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        output = b"".join(iter(lambda: read(ours), b""))
        process.wait(SECONDS)
    os.close(ours)
    return output.decode()


def seen(output: str) -> list[str]:
    """The lines that stay on a terminal: a line that was erased is gone."""
    lines = output.replace("\r\n", "\n").split("\n")
    return [_ESCAPE.sub("", _LIVE.sub("", line)) for line in lines]


def summary(lines: list[str]) -> list[str]:
    """The lines from the heading on."""
    return lines[next(number for number, line in enumerate(lines) if line.startswith("Scan ")) :]


@dataclass(frozen=True)
class Drawing:
    """What a scan wrote on a terminal of a width, and the home of its user."""

    home: Path
    width: int
    output: str


@pytest.fixture(scope="module", params=WIDTHS)
def drawing(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Drawing:
    """A scan at each width, for all tests that read what it drew."""
    home = tmp_path_factory.mktemp("home")

    def write(path: str, text: str) -> Path:
        (home / path).parent.mkdir(exist_ok=True)
        (home / path).write_text(text)
        return Path(path)

    output = drawn(home, request.param, "scan", "--from", written(write), "--db", "a folder.db")
    return Drawing(home, request.param, output)


def test_no_line_is_wider_than_the_terminal(drawing: Drawing) -> None:
    """Long names, wide characters and the table of policies keep to the width of the window."""
    lines = summary(seen(drawing.output))

    assert [] == [line for line in lines if cell_len(line) > drawing.width]
    assert "Policy " in "\n".join(lines)


def test_the_parts_follow_each_other(drawing: Drawing) -> None:
    """Verdict, what is incomplete, the worst problems, the policies, and what to do next."""
    text = "\n".join(summary(seen(drawing.output)))

    parts = ("Scan ", "6 problems would be refused", "broken.yaml", "Worst problems", "Policies (", "Next:")
    places = [text.index(part) for part in parts]
    assert sorted(places) == places


def test_the_next_commands_work_as_printed(drawing: Drawing) -> None:
    """A shell runs both, with the database that the user named."""
    lines = seen(drawing.output)
    script = "\n".join(lines[lines.index("Next:") + 1 :])

    ran = subprocess.run(
        ["bash", "-ec", script],
        cwd=drawing.home,
        env=environment(drawing.home, {"PATH": f"{ASSAY.parent}:{os.environ['PATH']}"}),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )

    assert (0, "Problem p-") == (ran.returncode, ran.stdout[:10]), ran.stderr
    assert (drawing.home / "assay-report" / "index.html").exists()


def test_progress_is_gone_before_the_report(drawing: Drawing) -> None:
    """The heading begins a line, although the live line was drawn on it."""
    assert "v1 ConfigMap: 3 objects" in drawing.output
    assert "v1 ConfigMap: 3 objects" not in "\n".join(seen(drawing.output))
    assert re.search(r"(\n|\x1b\[K)Scan ", drawing.output)


def test_a_dumb_terminal_receives_no_escapes(home: Path, cluster: Path) -> None:
    """Neither colours nor movements of the cursor."""
    output = drawn(home, 80, "scan", "--from", cluster, TERM="dumb")

    assert "\x1b" not in output
    assert "listed v1 ConfigMap: 3 objects, 3 evaluated" in output


@pytest.mark.parametrize(
    ("variables", "flags", "coloured"),
    [
        ({}, (), True),
        ({"NO_COLOR": "1"}, (), False),
        ({"NO_COLOR": "1"}, ("--color", "always"), True),
        ({}, ("--color", "never"), False),
    ],
)
def test_colours(home: Path, cluster: Path, variables: dict[str, str], flags: tuple[str, ...], coloured: bool) -> None:  # noqa: FBT001 - a case
    """The flag comes before NO_COLOR, which comes before the terminal."""
    output = drawn(home, 80, "scan", "--from", cluster, "-q", *flags, **variables)

    assert coloured == ("\x1b[1;30;43m INCOMPLETE" in output)


def test_a_pipe_is_never_wrapped(assay: Assay, cluster: Path) -> None:
    """Each row is one line, without escapes."""
    printed = assay("scan", "--from", cluster, "-q").stdout.decode()

    rows = [line for line in printed.splitlines() if line.startswith("p-")]
    assert 6 == len(rows)
    assert "\x1b" not in printed
    assert [] == [row for row in rows if "refused" not in row or "unowned" not in row]


def test_columns_decides_before_the_terminal(home: Path, cluster: Path) -> None:
    """A user may ask for another width than that of the window."""
    lines = summary(seen(drawn(home, 60, "scan", "--from", cluster, COLUMNS="120")))

    assert 60 < max(map(cell_len, lines)) <= 120


def test_a_password_is_not_printed(assay: Assay, tmp_path: Path, cluster: Path) -> None:
    """The commands lack the database then, and a sentence names the variable."""
    with database("postgresql", tmp_path) as url:
        ran = assay("scan", "--from", cluster, "--db", url.replace("@", ":hunter2@", 1))

    *_, explain, report, note = ran.stdout.decode().splitlines()
    assert "Set ASSAY_DB to the value of --db first: a password is not printed." == note
    assert "hunter2" not in explain + report + ran.stderr


def test_the_next_commands_have_what_the_user_typed(assay: Assay, write: Write, cluster: Path) -> None:
    """Each has the flags that it knows: the pages would lack the waivers otherwise."""
    write("w.yaml", waiver("accepted", "namespace: shop", policy="fine"))
    write("my.yaml", "qps: 10\n")
    ran = assay("scan", "--from", cluster, "--waivers", "w.yaml", "--config", "my.yaml")

    *_, explain, report = (shlex.split(line, comments=True) for line in ran.stdout.decode().splitlines())
    assert ["--config", "my.yaml"] == explain[3:]
    assert ["--html", "assay-report", "--waivers", "w.yaml", "--config", "my.yaml"] == report[3:]
    assert [0, 0] == [assay(*command[1:]).code for command in (explain, report)]

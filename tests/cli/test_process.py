"""The installed command with pipes, signals, terminals, disks and shells."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import pytest

from scanner.report import FORMATS
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_trouble import kubeconfig
from tests.command import ASSAY, SECONDS, assay_here, environment
from tests.command import assay as assay_process
from tests.http_server import serving_on_loopback

Write = Callable[[str, str], Path]


@pytest.fixture
def cluster(write: Write) -> Path:
    """A folder with an object and a policy that it violates."""
    write("cluster/object.yaml", config_map("first"))
    write("cluster/policy.yaml", bound("strict"))
    return Path("cluster")


@pytest.fixture
def many(write: Write) -> Path:
    """A folder with more objects than a pipe holds lines about."""
    write("cluster/objects.yaml", "---\n".join(config_map(f"object-{number}") for number in range(600)))
    write("cluster/policy.yaml", bound("strict"))
    return Path("cluster")


def shell(home: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `assay` is the installed command; the code is that of the first command in a pipe."""
    variables = {"PATH": f"{ASSAY.parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", f"{script}; exit ${{PIPESTATUS[0]}}"],
        cwd=home,
        env=environment(home, variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_reader_that_stops_early_is_no_error(home: Path, many: Path, assay: Assay, output: str) -> None:
    """`assay scan | head -1` prints no traceback, and the scan is recorded."""
    ran = shell(home, f"assay scan --from {many} -q -o {output} | head -1")

    assert (0, "", 1) == (ran.returncode, ran.stderr, len(ran.stdout.splitlines()))
    assert 2 == len(assay("scans").stdout.splitlines())


def test_the_exit_code_does_not_depend_on_the_reader(home: Path, many: Path, write: Write) -> None:
    """The exit code is that of the incomplete scan, not of the pipe."""
    write("cluster/broken.yaml", "kind: [")

    assert 3 == shell(home, f"assay scan --from {many} -q -o json | head -1").returncode


@pytest.mark.parametrize("command", ["report", "report -o json", "scans", "explain strict"])
def test_a_full_disk_behind_standard_output_is_an_error(home: Path, cluster: Path, assay: Assay, command: str) -> None:
    """The error is printed once."""
    assay("scan", "--from", cluster, "-q")

    ran = shell(home, f"assay {command} > /dev/full")

    assert 4 == ran.returncode
    assert "assay: standard output cannot be written (No space left on device)\n" == ran.stderr


def test_a_closed_standard_error_does_not_stop_the_scan(home: Path, cluster: Path) -> None:
    """Progress that cannot be written is dropped."""
    ran = shell(home, f"assay scan --from {cluster} 2>/dev/full")

    assert 0 == ran.returncode
    assert "strict" in ran.stdout


@pytest.mark.parametrize(
    ("streams", "code", "state"),
    [("-q >&-", 0, "complete"), ("2>&-", 0, "complete"), ("-q <&- >&- 2>&-", 0, "complete"), (">&-", 0, "complete")],
)
def test_a_scan_without_a_standard_stream_has_its_own_exit_code(
    home: Path, cluster: Path, assay: Assay, streams: str, code: int, state: str
) -> None:
    """The scan is stored: its database does not get the number of a stream."""
    ran = shell(home, f"assay scan --from {cluster} {streams}")

    assert (code, "") == (ran.returncode, ran.stderr if "2>" in streams or "-q" in streams else "")
    assert state in assay("scans").stdout.decode()


def test_a_closed_standard_input_is_named(home: Path, cluster: Path) -> None:
    """As the file with the settings, it is an error; as the cluster, it is a gap."""
    settings = shell(home, f"assay scan --from {cluster} -f - -q <&-")
    objects = shell(home, "assay scan --from - -q <&-")

    assert (2, 3) == (settings.returncode, objects.returncode)
    assert "standard input: cannot be read: it is closed" in settings.stderr
    assert "standard input: cannot be read: it is closed" in objects.stdout


@pytest.mark.parametrize(
    "flags",
    [
        *("-f", "--config", "--waivers", "--controls", "--fail-on new --baseline"),
        "--push-metrics https://127.0.0.1:1 --push-metrics-token-file",
    ],
)
def test_a_named_pipe_does_not_make_a_command_wait(home: Path, cluster: Path, assay: Assay, flags: str) -> None:
    """The error names the pipe."""
    os.mkfifo(home / "pipe")
    ran = assay("scan", "--from", cluster, "-q", *flags.split(), "pipe")

    assert 2 == ran.code, ran.stderr
    assert "pipe" in ran.stderr
    assert 1 == len(ran.stderr.splitlines())


def test_a_named_pipe_among_the_objects_is_a_gap(home: Path, cluster: Path, assay: Assay) -> None:
    """The other files are scanned."""
    os.mkfifo(home / cluster / "pipe.yaml")
    ran = assay("scan", "--from", cluster, "-q")

    assert 3 == ran.code
    assert (
        "pipe.yaml: cannot be read: it is a named pipe; name a regular file, or give - to read standard input"
        in ran.stdout.decode()
    )


def test_a_report_does_not_replace_the_top_folder(cluster: Path, assay: Assay) -> None:
    """The tree below it is not read."""
    ran = assay("scan", "--from", cluster, "-q", "--html", "/")

    assert 2 == ran.code
    assert ran.stderr.startswith("assay: Will not replace /: ")


def test_a_full_disk_ends_the_scan_with_one_sentence(home: Path, many: Path) -> None:
    """No half scan is called complete."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    ran = subprocess.run(
        [ASSAY, "scan", "--from", many, "-q", "--db", "assay.db"],
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,
        timeout=SECONDS,
    )

    assert (4, "", 1) == (ran.returncode, ran.stdout, len(ran.stderr.splitlines())), ran.stderr
    assert ran.stderr.startswith("assay: The database assay.db ")


def test_a_terminal_shows_colours_and_a_live_line(home: Path, cluster: Path) -> None:
    """The line about the current kind is drawn and erased again."""
    drawn = on_a_terminal(home, cluster, {})

    assert "\x1b[1;32m" in drawn
    assert "v1 ConfigMap: 1 object, 1 evaluated" in drawn


def test_no_colours_on_request(home: Path, cluster: Path) -> None:
    """With NO_COLOR a terminal receives no colours."""
    plain = on_a_terminal(home, cluster, {"NO_COLOR": "1"})

    assert "strict" in plain
    assert not [code for code in plain.split("\x1b[")[1:] if code[:2].rstrip("m").isdigit() and code[:1] in "349"]


def on_a_terminal(home: Path, cluster: Path, variables: dict[str, str]) -> str:
    """The output of `assay scan` on a terminal."""
    ours, theirs = pty.openpty()
    settings = environment(home, {"TERM": "xterm-256color", "COLUMNS": "100", **variables})
    with subprocess.Popen(
        [ASSAY, "scan", "--from", cluster], cwd=home, env=settings, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        drawn = b"".join(iter(lambda: read(ours), b""))
    os.close(ours)
    assert 0 == process.returncode
    return drawn.decode()


def read(terminal: int) -> bytes:
    """The next output on a terminal; empty when the other side has closed it."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


@pytest.fixture
def slow_server() -> Iterator[tuple[str, Event]]:
    """The URL of a server that never answers, and an event that is set by its first request."""
    requested, over = Event(), Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.set()
            over.wait(SECONDS)

    with serving_on_loopback(Slow) as port:
        yield f"http://127.0.0.1:{port}", requested
        over.set()


def test_an_interrupted_request_ends_the_command(home: Path, write: Write, slow_server: tuple[str, Event]) -> None:
    """Ctrl-C during a request ends the command with one word and no traceback."""
    url, requested = slow_server
    write("config", kubeconfig(url))
    with subprocess.Popen(
        [ASSAY, "scan", "--kubeconfig", "config"], cwd=home, env=environment(home), stderr=subprocess.PIPE, text=True
    ) as process:
        assert requested.wait(SECONDS)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=SECONDS)

    assert (3, "assay: interrupted") == (process.returncode, stderr.strip().splitlines()[-1])
    assert "Traceback" not in stderr


@pytest.mark.parametrize("name", ["assay", "kubectl-assay"])
def test_both_names_are_the_same_command(home: Path, name: str) -> None:
    """`kubectl assay` runs kubectl-assay, whose help uses that name."""
    ran = shell(home, f"{name} --help")

    assert 0 == ran.returncode
    assert ran.stdout.startswith(f"Usage: {name} [OPTIONS] COMMAND")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("assay sc", ["scan", "scans"]),
        ("assay scan --ass", ["--assume-bound"]),
        ("assay scan -o ", [name for name, form in FORMATS.items() if form.target != "folder"]),
        ("assay scan --export h", ["html-single=", "html="]),
        ("assay db up", ["upgrade"]),
    ],
)
def test_shells_complete_commands_and_flags(home: Path, words: str, completed: list[str]) -> None:
    """The script that --show-completion prints reads the completions from the command."""
    variables = {"_ASSAY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}

    ran = assay_here(home=home, variables=variables)

    assert completed == ran.stdout.decode().split()


def test_the_completion_script_is_printed(home: Path) -> None:
    """--show-completion prints a script for the shell."""
    ran = shell(home, "SHELL=/bin/bash assay --show-completion bash")

    assert "_ASSAY_COMPLETE=complete_bash" in ran.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["scan", "\x1b[31mred\u202e"],
        ["report", "\x1b]0;title\x07"],
        ["report", "--db", "/nowhere/\x9b31m\u202e"],
        ["scan", "--from", "/nowhere/\x1b[2J"],
        ["\u202etset"],
        ["scan", "--context", "\x1b[8m\u2066"],
    ],
)
def test_arguments_steer_no_terminal(home: Path, arguments: list[str]) -> None:
    """Error messages quote arguments, and scripts fill arguments with names of objects."""
    answer = assay_process(*arguments, home=home)

    assert answer.code
    assert answer.stderr
    assert [] == [mark for mark in answer.stderr if not (mark.isprintable() or mark in "\n\t")]

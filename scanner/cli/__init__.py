"""The command line: commands and flags. The only place that connects cluster, store and reports to a scan."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from scanner.cli.scanning.interruption import EXIT_INTERRUPTED, INTERRUPTED
from scanner.cli.terminal.exit_codes import COULD_NOT_RUN, find_exit_code
from scanner.cli.terminal.program import NAMES

if TYPE_CHECKING:
    from scanner.cli.scanning.conclusion import Conclusion

_INTERRUPTED = 130
_SCAN = "scan"
_WINDOWS = "win32"
_STDIN, _STDOUT, _STDERR = range(3)
_GARBAGE = 20_000
"""New objects between two collections of garbage: at start, modules and statements are made, which all stay in memory."""


def main(arguments: Sequence[str] | None = None, *, platform: str = sys.platform) -> None:
    """Run the command line and end with an exit code; an AssayError is printed as one sentence on stderr."""
    gc.set_threshold(_GARBAGE)
    from scanner.cli.scanning.conclusion import Conclusion, concluding
    from scanner.cli.terminal.stderr import escape_stderr, restore_streams

    if platform == _WINDOWS:
        _print_error(
            "Windows is not supported; run Assay on Linux or macOS, in the Windows Subsystem for Linux or in a container.",
            COULD_NOT_RUN,
            Conclusion(),
        )
        sys.exit(COULD_NOT_RUN)
    atexit.register(gc.freeze)  # a last collection of garbage would take an eighth of a short command
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character gets an escape, instead of an error that ends the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr = escape_stderr(sys.stderr)
    given = list(sys.argv[1:] if arguments is None else arguments)
    with restore_streams(), concluding() as conclusion:
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, _interrupt)
            code = _run(given, conclusion)
        except KeyboardInterrupt as interruption:
            code = _find_interrupted_code(interruption, given, conclusion)
        conclusion.end(code)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    from scanner.cli.terminal.stdout import flush_streams

    flush_streams()
    sys.exit(code)


def _replace_closed_streams() -> None:
    """Give the null device the numbers of closed standard streams, before another file gets them. Standard input stays closed."""
    for number in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(_STDOUT, "w", closefd=False)  # noqa: SIM115 - open as long as the process
    if sys.stderr is None:
        sys.stderr = open(_STDERR, "w", closefd=False)  # noqa: SIM115 - see above


def _run(given: Sequence[str], conclusion: Conclusion) -> int:
    from scanner.cli.application import build_commands
    from scanner.errors import AssayError

    name = Path(sys.argv[0]).name
    try:
        build_commands()(given, prog_name=name if name in NAMES else NAMES[0], obj=tuple(given))
    except AssayError as error:
        code = find_exit_code(error)
        _print_error(str(error), code, conclusion)
        return code
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            return _find_interrupted_code(end, given, conclusion)
        return end.code if isinstance(end.code, int) else 0
    except Exception as error:  # noqa: BLE001 - Python's own exit code, 1, means that a gate failed
        _print_error(_describe_fault(error), COULD_NOT_RUN, conclusion)
        return COULD_NOT_RUN
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Treat SIGTERM as Ctrl-C, also in the background: half-written reports are removed."""
    raise KeyboardInterrupt


def _find_interrupted_code(error: BaseException, arguments: Sequence[str], conclusion: Conclusion) -> int:
    """The exit code of a command that a signal has ended: its own, if it was exiting already; 3 for a scan, wherever it was."""
    from typer import Exit

    ended: BaseException | None = error
    while ended is not None:
        if isinstance(ended, Exit) and ended.exit_code != _INTERRUPTED:
            return ended.exit_code
        ended = ended.__context__
    code = EXIT_INTERRUPTED if arguments[:1] == [_SCAN] else COULD_NOT_RUN
    _print_error(INTERRUPTED, code, conclusion)
    return code


def _describe_fault(error: Exception) -> str:
    """The message for a bug of Assay. Its details may quote an object, so they are printed on request only."""
    import traceback

    if os.environ.get("ASSAY_DEBUG"):
        return "".join(traceback.format_exception(error)).rstrip()
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    return (
        f"internal error: {type(error).__name__}{where}. Please report it with the output under ASSAY_DEBUG=1; "
        "remove object data from that output first"
    )


def _print_error(text: str, exit_code: int, conclusion: Conclusion) -> None:
    with suppress(OSError):
        conclusion.fail(text, exit_code)

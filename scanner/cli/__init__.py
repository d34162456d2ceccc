"""Commands, flags and exit codes. The only place that wires edges to the run."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from scanner.cli.spelled import spelled

_NAMES = ("assay", "kubectl-assay")
_COULD_NOT_RUN = 4
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end with an exit code; trouble raised on purpose is one sentence on stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a name shows it spelled out, instead of ending the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr = spelled(sys.stderr)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    code = _run(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    from scanner.cli.output import let_go  # noqa: PLC0415 - nothing is imported before it is needed

    let_go()
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    from scanner.cli.application import application  # noqa: PLC0415 - nothing is imported before it is needed
    from scanner.errors import AssayError  # noqa: PLC0415

    name = Path(sys.argv[0]).name
    try:
        application(arguments, prog_name=name if name in _NAMES else _NAMES[0])
    except AssayError as error:
        _say(str(error))
        return error.exit_code
    except KeyboardInterrupt as interruption:
        return _interrupted(interruption)
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            return _interrupted(end)
        return end.code if isinstance(end.code, int) else 0
    except Exception as error:  # noqa: BLE001 - Python's own exit code for it, 1, would say that a gate failed
        _say(_fault(error))
        return _COULD_NOT_RUN
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """SIGTERM means what Ctrl-C means, also where a shell began the command in the background: half-written reports go."""
    raise KeyboardInterrupt


def _interrupted(error: BaseException) -> int:
    """The exit code of a command that a signal has ended: its own, where it was on its way out with one."""
    from typer import Exit  # noqa: PLC0415 - as above

    ended: BaseException | None = error
    while ended is not None:
        if isinstance(ended, Exit) and ended.exit_code != _INTERRUPTED:
            return ended.exit_code
        ended = ended.__context__
    _say("interrupted")
    return _COULD_NOT_RUN


def _fault(error: Exception) -> str:
    """A bug of ours. Its message may quote an object, so it is only shown to who asks for it."""
    if os.environ.get("ASSAY_DEBUG"):
        return "".join(traceback.format_exception(error)).rstrip()
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    return (
        f"internal error: {type(error).__name__}{where}. Please report it, with what ASSAY_DEBUG=1 makes it say; "
        "look through that first, it may quote objects"
    )


def _say(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"assay: {text}\n")

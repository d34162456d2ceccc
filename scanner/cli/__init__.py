"""The door: commands and flags. The only place that wires edges to the line."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; every error raised on purpose is one sentence on stderr and an exit code."""
    from scanner.cli.application import application  # noqa: PLC0415 - nothing is imported before it is needed
    from scanner.errors import AssayError  # noqa: PLC0415

    try:
        application()
    except AssayError as error:
        sys.stderr.write(f"assay: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("assay: interrupted\n")
        sys.exit(4)
    except BrokenPipeError:
        # The reader of a pipe has gone; the interpreter's own flush at exit must not complain about it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)

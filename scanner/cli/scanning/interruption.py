"""Ctrl-C and SIGTERM end a scan, wherever it is, with exit code 3.

Before the first page they end it at once. Then they end it after the current page, and the evaluated pages are stored. A scan that is
stored stays complete, and a signal ends its report.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, NoReturn, Self

EXIT_INTERRUPTED: Final = 3
"""The exit code of an interrupted scan: that of an incomplete one."""
INTERRUPTED: Final = "interrupted"
"""The reason of that exit code."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Turns signals into a KeyboardInterrupt.

    The first one is raised at once until `protect` is called, then inside `interruptible` blocks alone: while a page is evaluated
    and stored, a signal waits for that page. A second signal is raised anywhere, until the scan is `recorded`.
    """

    def __init__(self) -> None:
        """Install no handler yet."""
        self._received = 0
        self._pending = False
        self._protected = False
        self._interruptible = False
        self._recorded = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        """Install the handlers."""
        self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the former handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def happened(self) -> bool:
        """Return whether a signal has come."""
        return self._received > 0

    def protect(self) -> None:
        """Let signals wait for the next `interruptible` block from now on."""
        self._protected = True

    @property
    def is_pending(self) -> bool:
        """Return whether a signal waits for its effect."""
        return self._pending

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A block that a signal may end at any moment. Raises KeyboardInterrupt, also for an earlier signal that was not raised."""
        self._interruptible = True
        try:
            if self._pending:
                self._raise()
            yield
        finally:
            self._interruptible = False

    def recorded(self) -> None:
        """Note that the scan is stored: signals now only act inside `interruptible` blocks."""
        self._protected = self._recorded = True

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        again = self.happened and not self._recorded
        self._received += 1
        self._pending = True
        if self._interruptible or again or not self._protected:
            self._raise()

    def _raise(self) -> NoReturn:
        # The cleanup after the interruption is not interrupted itself.
        self._interruptible, self._protected, self._pending = False, True, False
        raise KeyboardInterrupt

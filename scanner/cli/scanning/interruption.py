"""Ctrl-C and SIGTERM end a scan after the current page, and the evaluated pages are stored.

Once the scan is stored, a signal ends only its report: the exit code stays the scan's.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Turns the first signal into a KeyboardInterrupt inside `interruptible` blocks, and a second one anywhere.

    While a page is evaluated and stored, a signal waits for that page.
    """

    def __init__(self) -> None:
        """Install no handler yet."""
        self._pending = False
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
    def is_pending(self) -> bool:
        """Return whether a signal waits for its effect."""
        return self._pending

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A block that a signal may end at any moment. Raises KeyboardInterrupt, also for an earlier signal."""
        self._interruptible = True
        try:
            if self._pending:
                raise KeyboardInterrupt
            yield
        finally:
            self._interruptible = False

    def recorded(self) -> None:
        """Note that the scan is stored: signals now only act inside `interruptible` blocks, and earlier ones are dropped."""
        self._pending, self._recorded = False, True

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        again, self._pending = self._pending, True
        if self._interruptible or (again and not self._recorded):
            # The cleanup after the interruption is not interrupted itself.
            self._interruptible = False
            raise KeyboardInterrupt

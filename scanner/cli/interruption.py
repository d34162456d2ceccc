"""Ctrl-C and SIGTERM: a scan ends at the next moment at which nothing is half done, and what it has seen is kept.

Once the scan is recorded, a signal ends only the report of it: the exit code stays the scan's.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Turns the first signal into a KeyboardInterrupt where `waiting` is in force, any other one at once.

    While a page is evaluated and recorded, a signal waits for that page.
    """

    def __init__(self) -> None:
        """Nothing is listened to yet."""
        self._asked = False
        self._waiting = False
        self._recorded = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        """Listen."""
        self._before = {number: signal.signal(number, self._hear) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the signals to whoever had them."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A block that may be left at any moment. Raises KeyboardInterrupt, also for a signal that came before."""
        self._waiting = True
        try:
            if self._asked:
                raise KeyboardInterrupt
            yield
        finally:
            self._waiting = False

    def recorded(self) -> None:
        """The scan is in the database: from now on signals are only heard inside `waiting`, and earlier ones are forgotten."""
        self._asked, self._recorded = False, True

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        again, self._asked = self._asked, True
        if self._waiting or (again and not self._recorded):
            # What tidies up after the interruption is not interrupted itself.
            self._waiting = False
            raise KeyboardInterrupt

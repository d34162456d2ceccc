"""Regular expressions that are compiled when they are first used: each command imports a hundred, and most commands use few (ADR 95)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, AnyStr

if TYPE_CHECKING:

    def pattern(text: AnyStr, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[AnyStr]:
        """See below."""
        ...

else:

    class pattern:  # noqa: N801 - it is called as `re.compile` is
        """A pattern as `re.compile` makes it. An expression that is not valid raises `re.error` when it is first used."""

        def __init__(self, text: str | bytes, flags: re.RegexFlag = re.NOFLAG) -> None:
            self._given = text, flags

        def __getattr__(self, name: str) -> object:
            # Python asks for an attribute once: the next time, the object has it.
            self.__dict__[name] = value = getattr(re.compile(*self._given), name)
            return value

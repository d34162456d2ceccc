"""A closed library reads nothing."""

from __future__ import annotations

import pytest

from scanner.web.requests.refusals import DatabaseUnavailable
from scanner.web.views.library import ScanLibrary


def test_a_closed_library_opens_no_other_connection(examples: str) -> None:
    """A thread that still counts gets an error, and no connection that is never closed."""
    library = ScanLibrary(examples)
    assert library.clusters()
    library.close()
    with pytest.raises(DatabaseUnavailable, match="cannot be read"), library.use_reader():
        pass

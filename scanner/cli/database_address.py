"""The database of a command: `--db`, else `ASSAY_DB`, else `db` of the configuration, else a file in the user's data directory.

The variable `ASSAY_DEFAULT_DB`, which the container image sets, names another default: as `ASSAY_DB` it would come before the file.
"""

from __future__ import annotations

import os
from typing import Final

DEFAULT_DB: Final = "ASSAY_DEFAULT_DB"


def address(url: str) -> str:
    """The URL or path of the database to use."""
    named = url or os.environ.get(DEFAULT_DB)
    if named:
        return named
    from platformdirs import user_data_path

    return str(user_data_path("assay", appauthor=False) / "assay.db")

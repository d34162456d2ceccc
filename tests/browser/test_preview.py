"""The page of `assay preview` in a browser: light and dark, on a desk and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
import yaml
from playwright.sync_api import Browser

from tests.cli.test_answers import CLUSTER, COST, PREVIEW
from tests.command import assay_here
from tests.shop import mutation

from .conftest import opened
from .layout import broken_words
from .test_access import reject_violations

_INCOMPLETE = 3
"""The exit code of the preview, which leaves requests undecided."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page of a preview with rows of every kind."""
    home = tmp_path_factory.mktemp("preview")
    finance = mutation("cost-of-finance", COST.format("finance"), "deployments", group="apps")
    for name, documents in (("cluster", CLUSTER), ("mutating", finance)):
        (home / f"{name}.yaml").write_text(yaml.safe_dump_all(documents))
    ran = assay_here(*PREVIEW, "-o", "html", home=home)
    assert _INCOMPLETE == ran.code, ran.stderr
    (home / "preview.html").write_bytes(ran.stdout)
    return home


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 1400), ("dark", 390)])
def test_the_page_of_a_preview(browser: Browser, folder: Path, scheme: Literal["light", "dark"], width: int) -> None:
    """It violates no rule of axe, is not wider than the window, and breaks no word of a cell."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    report = opened(page, folder)
    reject_violations(report, "preview.html", width)
    broken = list(broken_words(page, width, 900, iter([(folder / "preview.html").as_uri()])))
    page.close()

    assert ([], []) == (report.faults, broken)

"""A visit of a user: the pages of a report, or of `assay serve`, that one link after the other leads to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from playwright.sync_api import Locator, Page, Request


@dataclass
class Visit:
    """Pages below the address `home`; `faults` are errors on the console and requests to elsewhere, `clicks` counts those of the user."""

    page: Page
    home: str
    faults: list[str] = field(default_factory=list)
    clicks: int = 0

    def open(self, path: str) -> Page:
        """Go to a page by its path, query and fragment."""
        self.page.goto(f"{self.home}/{path}")
        return self.page

    def follow(self, link: Locator) -> None:
        """Click a link or a button, and wait for its page: a click ends while the new page is still being read."""
        link.click()
        self.page.wait_for_load_state()
        self.clicks += 1

    def click(self, name: str, role: Literal["link", "button"] = "link", *, exact: bool = False) -> None:
        """Click the first link or button with this text."""
        self.follow(self.page.get_by_role(role, name=name, exact=exact).first)

    def choose(self, name: str, value: str) -> None:
        """Choose a value of a field of the list, which is a click, too."""
        self.page.locator(f".filter select[name={name}]").select_option(value)
        self.clicks += 1

    def main(self) -> str:
        """The text of the main part of the page."""
        return " ".join(self.page.get_by_role("main").inner_text().split())

    def rows(self) -> list[str]:
        """The texts of the rows of the list of findings, one after the other."""
        return [" ".join(text.split()) for text in self.page.locator(".problems tbody tr").all_inner_texts()]

    def shown(self, caption: str) -> list[str]:
        """The rows, when the caption of the list is this text."""
        self.page.get_by_role("table").get_by_text(caption, exact=True).wait_for()
        return self.rows()

    def end(self, most: int) -> None:
        """Check that the task took few clicks, and that nothing was wrong on the way."""
        assert [] == self.faults
        assert most >= self.clicks


def visit_to(page: Page, home: str) -> Visit:
    """A visit whose faults are collected; no page is open yet."""
    visit = Visit(page, home)

    def note(request: Request) -> None:
        if not request.url.startswith((f"{home}/", "data:")):
            visit.faults.append(request.url)

    page.on("request", note)
    page.on("console", lambda message: visit.faults.append(message.text))
    page.on("dialog", lambda dialog: visit.faults.append(dialog.message))
    page.on("pageerror", lambda error: visit.faults.append(str(error)))
    return visit

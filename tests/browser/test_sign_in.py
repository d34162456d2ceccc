"""Signing in and out in a browser: forms, cookies and policies as a browser applies them."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from scanner.web.access.settings import OidcSettings
from tests.web.access.conftest import TOKEN, TOKENS
from tests.web.access.provider import CLIENT, provided
from tests.web.access.running import Running, access, running


def opened(browser: Browser, faults: list[str], **options: bool) -> Page:
    """A page of a new visitor, whose errors on the console are faults."""
    page = browser.new_context(**options).new_page()  # type: ignore[arg-type]
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    return page


@pytest.mark.parametrize("script", [True, False])
def test_a_visitor_signs_in_with_a_token_and_out(browser: Browser, script: bool) -> None:  # noqa: FBT001 - a case
    """With and without script; the address that was asked for stays."""
    faults: list[str] = []
    with running(access(tokens=TOKENS)) as server:
        page = opened(browser, faults, java_script_enabled=script)
        page.goto(f"{server.url}/clusters/a?owner=b")
        assert f"{server.url}/login?next=%2Fclusters%2Fa%3Fowner%3Db" == page.url
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{server.url}/clusters/a?owner=b")
        assert '"user":"grafana"' in page.content()

        page.goto(f"{server.url}/logout")
        assert page.get_by_text("You are signed in as grafana.").is_visible()
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url(f"{server.url}/logout")
        assert page.get_by_role("heading", name="You are signed out").is_visible()
        page.goto(f"{server.url}/clusters/a")
        assert "/login" in page.url
    assert [] == faults


def test_a_visitor_signs_in_at_a_provider(browser: Browser) -> None:
    """The cookie of the sign-in comes back from the other site."""
    with provided() as provider:
        settings = access(oidc=OidcSettings(provider.issuer, CLIENT, provider.secret, ("auditors",)))
        with running(settings) as server:
            page = opened(browser, [])
            page.goto(f"{server.url}/clusters/a")
            assert f"{server.url}/clusters/a" == page.url
            assert '"user":"jane@example.com"' in page.content()


def test_the_form_of_another_site_signs_nobody_in(browser: Browser) -> None:
    """The browser tells where the form comes from."""
    with running(access(tokens=TOKENS)) as server:
        page = opened(browser, [])
        page.set_content(
            f'<form method="post" action="{server.url}/login"><input name="token" value="{TOKEN}"><button>x</button></form>'
        )
        page.get_by_role("button").click()
        page.get_by_role("heading", name="The form comes from another site").wait_for()
        assert [] == page.context.cookies()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_signing_in_violate_no_rule_of_axe(browser: Browser, scheme: str) -> None:
    """The form, the page of the session, a refusal."""
    with running(access(tokens=TOKENS)) as server:
        page = browser.new_context(color_scheme=scheme, bypass_csp=True).new_page()  # type: ignore[arg-type]
        found = [_violations(page, server, path) for path in ("/login", "/logout", "/callback?state=x")]
    assert [[], [], []] == found


def _violations(page: Page, server: Running, path: str) -> list[str]:
    page.goto(f"{server.url}{path}")
    return [f"{each['id']}: {each['help']}" for each in Axe().run(page).response["violations"]]

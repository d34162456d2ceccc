"""Texts of findings are stored as templates, and read back unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.store.rows.stored_texts import NAME, NAMESPACE, fill_template, template_of

WORDS = st.text(st.sampled_from("ab-.\x01\x02\x03 \u00e9"), max_size=4)
TEXTS = st.lists(WORDS | st.text(max_size=5), max_size=8).map("".join)


@given(TEXTS, WORDS, WORDS)
def test_a_text_reads_back_unchanged(text: str, name: str, namespace: str) -> None:
    """For every text, name and namespace, control characters included."""
    assert text == fill_template(template_of(text, name, namespace), name, namespace)


@pytest.mark.parametrize(
    ("text", "name", "namespace", "template"),
    [
        ("web denies web", "web", "shop", f"{NAME} denies {NAME}"),
        ("shop/web: denied", "web", "shop", f"{NAMESPACE}/{NAME}: denied"),
        ("web-proxy is not web", "web", "", f"web-proxy is not {NAME}"),
        ("web\x01 is web", "web", "", "web\x03\x01 is web"),
        ("no name", "", "", "no name"),
    ],
)
def test_marks_stand_for_whole_words(text: str, name: str, namespace: str, template: str) -> None:
    """A name inside a longer word stays; a text with a control character of its own is not replaced."""
    assert template == template_of(text, name, namespace)

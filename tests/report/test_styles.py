"""The style sheets of pages that a report has by the thousand."""

from __future__ import annotations

import pytest

from scanner.report.styles import used_style


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (".a { color: red; margin: 0 1px; }", ".a{color:red;margin:0 1px}"),
        (".a, .b .c { x: y }", ".a{x:y}"),
        (".b { x: y }", ""),
        ("table { x: y } p { x: y }", "p{x:y}"),
        (".a:hover, .a::marker { x: y }", ".a:hover,.a::marker{x:y}"),
        ("@media print { .b { x: y } .a { x: y } }", "@media print{.a{x:y}}"),
        ("@media print { .b { x: y } }", ""),
        (
            '@media print { @page { @top-left { content: "a;  b" } } .a { x: y } } p { x: y }',
            '@media print{@page{ @top-left { content: "a; b" } }.a{x:y}}\np{x:y}',
        ),
        (":is(.b, .c) { x: y }", ":is(.b, .c){x:y}"),
    ],
)
def test_only_rules_that_the_page_can_use_are_kept(style: str, expected: str) -> None:
    """A rule is kept if each class and element of one of its selectors is a word of the page."""
    assert expected == used_style(style, {"a", "p"})

"""The HTML of rows and findings has no byte that a browser does not need."""

from __future__ import annotations

import pytest

from scanner.report.html.pieces import shorten


@pytest.mark.parametrize(
    ("html", "shortened"),
    [
        ("<dl>\n<dt>a</dt><dd>b</dd>\n<dt>c</dt><dd>d</dd>\n</dl>", "<dl>\n<dt>a<dd>b<dt>c<dd>d</dl>"),
        ("<ol>\n<li>a</li>\n<li>b</li>\n</ol>", "<ol>\n<li>a<li>b</ol>"),
        ("<tr><td>a</td><th>b</th></tr>", "<tr><td>a<th>b</tr>"),
        ("<p>a</p>\n<dl></dl>", "<p>a<dl></dl>"),
        ("<code>&#39;a&#39; &lt; &#34;b&#34;</code>", "<code>'a' &lt; \"b\"</code>"),
    ],
)
def test_needless_bytes_are_left_out(html: str, shortened: str) -> None:
    """End tags that HTML's optional tags lets out, with the white space behind them, and quotes escaped in texts."""
    assert shortened == shorten(html)


@pytest.mark.parametrize(
    "html",
    [
        "<p>a</p> text",
        "<p>a</p><pre>b</pre>",
        "<td>a</td></table>",
        '<a title="&#34;a&#34;">b</a>',
        "<li>a</li> text",
    ],
)
def test_needed_bytes_stay(html: str) -> None:
    """Text behind an element is no part of it, and a quote in an attribute would end it."""
    assert html == shorten(html)

"""The report as Markdown: what a reader of a job's summary sees first, and what no text of an object can do."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from syrupy.assertion import SnapshotAssertion

from scanner.model.scans.scan import Coverage, CoverageState, ScanState
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.formats.markdown import LONGEST
from scanner.report.text.safe_text import escape_markdown
from tests.report.in_memory import ScanInMemory

from .records import hostile_record, large_record, partial_record, previewed, scan, small_record


def rendered(record: ScanInMemory) -> str:
    """The report of a scan."""
    out = io.StringIO()
    FORMATS["markdown"].render(document_of(record), out)
    return out.getvalue()


def test_report_of_a_small_scan(snapshot: SnapshotAssertion) -> None:
    """The report of a small scan equals the recorded one."""
    assert rendered(partial_record()) == snapshot


@pytest.mark.parametrize(("record", "word"), [(small_record(), "Complete"), (partial_record(), "Incomplete")])
def test_the_first_line_is_the_verdict(record: ScanInMemory, word: str) -> None:
    """The first word tells whether everything was examined."""
    assert rendered(record).startswith(f"# {word}: ")


UNLISTED = tuple(
    Coverage("v1", f"Kind{number}", CoverageState.FORBIDDEN, note="not for jane") for number in range(2_000)
)


def incomplete(record: ScanInMemory) -> ScanInMemory:
    """The same scan, of which many kinds were not listed."""
    return replace(record, scan=scan(ScanState.INCOMPLETE), coverage=UNLISTED)


@pytest.mark.long
@pytest.mark.parametrize(
    ("record", "heading", "row", "total"),
    [
        (incomplete(small_record()), "**Not examined (2,000 items):**", "- ", "2,000 lines"),
        (incomplete(large_record(900, policies=900, namespaces=1)), "## Policies", "| policy-", "900 policies"),
        (large_record(3_000, policies=1, namespaces=3_000), "## Namespaces", "| team-", "3,000 namespaces"),
    ],
    ids=["gaps", "policies", "namespaces"],
)
def test_a_long_list_counts_its_rest(record: ScanInMemory, heading: str, row: str, total: str) -> None:
    """GitHub refuses a longer text. No list displaces another one, or the facts, and none is cut in silence."""
    text = rendered(record)
    section = text.split(heading)[1].split("\n#")[0].split("\n**")[0]
    shown = sum(line.startswith(row) for line in section.splitlines())

    assert LONGEST >= len(text)
    assert 100 < shown
    assert f"\n{shown:,} of {total} shown: GitHub takes at most 65,536 characters.\n" in section
    assert [] == [
        part for part in ("- Coverage: ", "## Worst problems", "## Policies", "## Owners") if part not in text
    ]


def test_a_report_that_fits_is_whole() -> None:
    """Nothing is counted where nothing is left out."""
    text = rendered(large_record(400, policies=100, namespaces=100))

    assert 100 == sum(line.startswith("| policy-") for line in text.splitlines())
    assert "GitHub takes at most" not in text


def test_policies_without_a_failing_check_are_counted() -> None:
    """Also if no policy has one."""
    passing = replace(small_record(), found=lambda: (()), tallies={})

    assert "\n4 policies without a failing check.\n" in rendered(passing)
    assert "\n1 other policy without a failing check.\n" in rendered(small_record())


def test_no_text_is_markup() -> None:
    """Names and messages keep their letters and lose their meaning, and no line break of theirs ends a row."""
    text = rendered(hostile_record())

    assert [] == [mark for mark in ("<script>", "<img", "\x1b", "\u202e", "[bold red]") if mark in text]
    assert {line.count(" | ") for line in text.splitlines() if line.startswith("| p-")} <= {7}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("thanks @octocat/team", "thanks @&#8203;octocat/team"),
        ("nginx@sha256:0", "nginx@sha256:0"),
        ("see #12", r"see \#&#8203;12"),
        ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
        ("https://example.com, www.example.com", "https&#58;//example.com, www&#46;example.com"),
        ("a|b *c* _d_ `e` [f](g)", r"a\|b \*c\* \_d\_ \`e\` \[f\](g)"),
    ],
)
def test_github_makes_nothing_of_a_text(text: str, shown: str) -> None:
    """No mention of a user, no reference to an issue, no link, no markup; an entity is one."""
    assert shown == escape_markdown(text)


def tokens_of(text: str) -> list[Token]:
    """What a renderer of Markdown with tables reads, the parts of lines included."""
    blocks = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return [part for block in blocks for part in (block, *(block.children or ()))]


@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])
def test_a_renderer_reads_headings_lists_and_tables_alone(record: ScanInMemory) -> None:
    """Every table is one, and no text of an object is a link, an image, HTML, code or emphasis."""
    text = rendered(record)
    tokens = tokens_of(text)
    types = {token.type.removesuffix("_open").removesuffix("_close") for token in tokens}

    assert sum("---" in line and set(line) <= set("| -:") for line in text.splitlines()) == sum(
        token.type == "table_open" for token in tokens
    )
    assert types <= {
        *("heading", "paragraph", "inline", "text", "text_special", "softbreak", "bullet_list", "list_item", "strong"),
        *("table", "thead", "tbody", "tr", "th", "td", "code_inline"),
    }
    assert {record.scan.id} == {token.content for token in tokens if token.type == "code_inline"}


def test_a_renderer_shows_every_text_as_it_is() -> None:
    """Escapes and entities are gone, and what remains is the text, without the spaces that keep GitHub from references."""
    text = "a|b *c* _d_ `e` [f](g) <h> & #1 @i ~~j~~ !k \\ https://l"
    [inline] = [token for token in tokens_of(escape_markdown(text)) if token.type == "inline"]

    assert text == "".join(part.content for part in inline.children or ()).replace("\u200b", "")


def test_previews_are_no_violations() -> None:
    """A sentence and a column of their own have them, and no namespace or owner has findings."""
    text = rendered(previewed())

    assert "\n6 findings of policies that are not bound: not in force.\n" in text
    assert "| Policy | Severity | Action | Preview |\n" in text
    assert [] == [word for word in ("Violated", "## Namespaces", "## Owners") if word in text]

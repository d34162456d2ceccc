"""The entries of texts and the words of a search, beside a definition that reads characters one by one."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.store.rows.search_entries import MOST_ENTRIES, SearchWord, list_entries, list_name_entries, split_words

JOINTS = "-._:"
Name = list[str]

texts = st.text(st.sampled_from("abcdAB019-._:/ '\"*\\éßŐ部器é"), max_size=30)
names = st.from_regex(r"[a-z0-9]{1,4}([-.]{1,2}[a-z0-9]{1,4}){0,10}", fullmatch=True)


def names_in(text: str) -> list[Name]:
    """The names of a text in small letters and ASCII: parts that single or several joints connect."""
    found: list[Name] = [[""]]
    joints = ""
    for character in [*text, " "]:
        if character.isalnum():
            if joints and found[-1] != [""]:
                found[-1].append("")
            joints = ""
            found[-1][-1] += character
        elif character in JOINTS:
            joints += character
        else:
            found.append([""])
            joints = ""
    return [name for name in found if name != [""]]


def defined(texts_of_row: Iterable[str], asked: str) -> bool:
    """Whether each name of a word follows in a text, its last part as the beginning of a part."""
    stored = [name for text in texts_of_row for name in names_in(text)]
    wanted = names_in(asked)
    return bool(wanted) and all(any(follows(name, parts) for name in stored) for parts in wanted)


def follows(name: Name, parts: Name) -> bool:
    """Whether parts follow each other in a name."""
    *whole, last = parts
    return any(
        name[start : start + len(whole)] == whole and name[start + len(whole)].startswith(last)
        for start in range(len(name) - len(whole))
    )


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("web-frontend", "web"),
        ("web-frontend", "front"),
        ("web-frontend", "web-fr"),
        ("web-frontend", "WEB_FR"),
        ("kube-system/coredns-5d78c9869d-x2k4l", "5d78"),
        ("kube-system/coredns-5d78c9869d-x2k4l", "kube-system/coredns"),
        ('container "web" must not run as root', "root"),
        ("object.spec.template.spec.hostNetwork", "spec.hostnetwork"),
        ("nginx:1.25", "nginx:1"),
        ("Größe", "grosse"),
        ("café", "CAFE"),
        ("cafe\u0301s", "café"),
        ("不允许特权容器", "特权"),
        ("हिन्दी", "हि"),
    ],
)
def test_a_word_matches_the_beginning_of_a_part(text: str, asked: str) -> None:
    """Names are found by each of their parts, and by parts that follow each other; case and accents do not count."""
    [word] = split_words(asked)

    assert word.matches(list_entries(text))


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("web-frontend", "end"),
        ("web-frontend", "frontend-web"),
        ("web frontend", "web-fr"),
        ("web-frontend", "web-x"),
        ("web", "***"),
        ("web", "--5"),
    ],
)
def test_a_word_does_not_match_other_texts(text: str, asked: str) -> None:
    """The middle of a part, another order, parts of two names, and words without a letter."""
    [word] = split_words(asked)

    assert not word.matches(list_entries(text))


@given(row=st.lists(texts.filter(str.isascii), max_size=3), asked=texts.filter(str.isascii))
def test_words_match_as_they_are_defined(row: list[str], asked: str) -> None:
    """For any texts: entries find exactly the names in which the parts of a word follow each other."""
    for word in split_words(asked):
        assert defined([text.lower() for text in row], word.text.lower()) == word.matches(list_entries(*row))


@given(row=st.lists(st.one_of(names, texts), max_size=3))
def test_names_of_objects_have_the_entries_of_texts(row: list[str]) -> None:
    """The faster function for names has the same entries."""
    assert set(list_entries(*row)) == set(list_name_entries(*row))


@given(text=st.text(max_size=40))
def test_entries_have_letters_digits_and_dashes_alone(text: str) -> None:
    """No character of theirs is syntax for a database, and none begins as the entries of kinds do."""
    found = [*list_entries(text), *(begin for word in split_words(text) for begin in word.beginnings)]

    assert [] == [entry for entry in found if entry.startswith("-") or not entry.replace("-", "a").isalnum()]


def test_a_long_text_has_its_first_entries() -> None:
    """An expression of any length takes limited space."""
    words = [f"word{number}" for number in range(9_000)]

    assert words[:MOST_ENTRIES] == list_entries(" ".join(words))


def test_long_names_are_found_by_their_first_characters() -> None:
    """64 characters of a name, and eight of its parts, count on both sides."""
    long, parts = "x" * 90, "-".join(map(str, range(12)))

    assert SearchWord("", ("x" * 64,)).matches(list_entries(long))
    assert [True, True] == [word.matches(list_entries(long, parts)) for word in split_words(f"{long} {parts}")]


def test_a_long_search_is_cut() -> None:
    """256 characters and eight words count."""
    assert [str(number) for number in range(8)] == [word.text for word in split_words(" ".join(map(str, range(20))))]
    assert [("x" * 256, ("x" * 64,))] == [tuple(word) for word in split_words("x" * 5000)]

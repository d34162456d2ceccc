"""A secret that a process sends is masked in every form in which a server may repeat it."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from html import escape
from urllib.parse import quote, quote_plus

import pytest

from scanner.audit.own_secrets import OwnSecrets
from scanner.model.json import Json

TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzY2FubmVyIiwibiI6NDJ9.vZt9-q_Wm3Kx7Rj2Yp5LdQ8sNf4GhTc"
SECRETS = {
    "word": "hidden-own-token",
    "signs": """Pa"s<w&r'd/+%\\x""",
    "other letters": "pässwörd-😀-x",
    "long": TOKEN,
    "long with signs": """correct"horse<battery&staple's;%of$a|very{long\\word=with+signs/in#it!""",
}
FORMS: Mapping[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "capitals": lambda text: text.upper(),
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON with other letters": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "Python": repr,
    "Python in ASCII": ascii,
    "bytes of Python": lambda text: repr(text.encode()),
    "URL": quote,
    "URL without slashes": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "URL in URL": lambda text: quote(quote(text)),
    "URL with all characters escaped": lambda text: "".join(f"%{octet:02X}" for octet in text.encode()),
    "URL in small letters": lambda text: "".join(f"%{octet:02x}" for octet in text.encode()),
    "HTML": escape,
    "HTML in HTML": lambda text: escape(escape(text)),
    "JSON in HTML": lambda text: escape(json.dumps(text)[1:-1]),
    "JSON in a URL": lambda text: quote(json.dumps(text)[1:-1], safe=""),
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base64 behind one character": lambda text: b64encode(f"x{text}".encode()).decode(),
    "base64 in a longer text": lambda text: b64encode(f"GET / Bearer {text}\r\n\r\n".encode()).decode(),
    "base64 of URLs": lambda text: urlsafe_b64encode(f"me:{text}".encode()).decode(),
    "base64 in a URL": lambda text: quote(b64encode(f"{text}//?".encode()).decode(), safe=""),
    "hexadecimal digits": lambda text: text.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_in_each_form(secret: str, form: str) -> None:
    """The text around it stays."""
    written = FORMS[form](SECRETS[secret])
    shown = OwnSecrets(SECRETS[secret]).mask(f"the proxy said: {written} (again)")
    assert ("the proxy said: ", "[redacted]", " (again)") == (shown[:16], shown[16:].strip("b'\"\\")[:10], shown[-8:])
    assert 32 > len(shown.replace("[redacted]", "").replace("the proxy said: ", "").replace(" (again)", ""))


@pytest.mark.parametrize(
    "part",
    [TOKEN[:31], TOKEN[7:40], TOKEN[-31:], b64encode(TOKEN.encode()).decode()[5:40], f"{TOKEN[:64]}\n{TOKEN[64:]}"],
)
def test_a_part_of_a_long_secret_is_masked(part: str) -> None:
    """Servers cut long lines, and break them."""
    shown = OwnSecrets(TOKEN).mask(f"header {part}, cut")
    assert ("header [redacted]", ", cut") == (shown[:17], shown[-5:])
    assert 32 > len(shown.replace("[redacted]", "").replace("header ", "").replace(", cut", ""))


@pytest.mark.parametrize("secret", ["word", "signs", "other letters"])
def test_a_short_secret_is_masked_with_each_character_escaped(secret: str) -> None:
    """As in HTML and in JSON, and that once more as in a URL."""
    numbers = "".join(f"&#{ord(char)};" for char in SECRETS[secret])
    units = SECRETS[secret].encode("utf-16-be").hex()
    escapes = "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
    shown = OwnSecrets(SECRETS[secret]).mask(" ".join([numbers, quote(numbers), escapes, quote(escapes, safe="")]))
    assert "[redacted] [redacted] [redacted] [redacted]" == shown


def test_several_secrets_are_masked() -> None:
    """The longer one first, of which the other one may be a part."""
    assert "[redacted] and [redacted]" == OwnSecrets("hunter2", "bob:hunter2").mask("bob:hunter2 and hunter2")


def test_a_short_text_is_no_secret_to_mask() -> None:
    """It is a part of too many words."""
    assert "abandon" == OwnSecrets("", "a", "ban").mask("abandon")


def test_a_text_without_a_secret_is_the_same() -> None:
    """Also where no secret is known."""
    text = 'pods is forbidden: User "jane" cannot list resource "pods" \ud800'
    assert (text, text[:-1]) == (OwnSecrets().mask(text), OwnSecrets("hunter2").mask(text)[:-1])


def test_a_document_is_masked_in_its_texts_and_keys() -> None:
    """Numbers stay, and so do the other texts."""
    document: Json = {"a": ["hunter2", 1, None], "hunter2": {"b": "x hunter2"}}
    assert {"a": ["[redacted]", 1, None], "[redacted]": {"b": "x [redacted]"}} == OwnSecrets("hunter2").mask_document(
        document
    )


def test_a_secret_that_is_added_is_masked_from_then_on() -> None:
    """Tokens are renewed; the earlier one may still be repeated."""
    secrets = OwnSecrets("first-token")
    before = secrets.mask("first-token second-token")
    secrets.add("second-token")
    assert ("[redacted] second-token", "[redacted] [redacted]") == (before, secrets.mask("first-token second-token"))

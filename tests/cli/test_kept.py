"""`--keep-label` and `--keep-annotation`: which keys a scan keeps, and which no label or annotation can have."""

from __future__ import annotations

import pytest

from scanner.cli.flags.kept_labels import KeptKeyFlags
from scanner.errors import UsageError
from scanner.model.population import DEFAULT_KEYS
from scanner.scan.options import Options
from tests.cli.conftest import Assay


def test_keys_add_to_the_default() -> None:
    """Without a flag, the default is kept."""
    keys = KeptKeyFlags(("example.com/team",), ("Example.com/contact",)).keys()
    assert DEFAULT_KEYS.add_keys(("example.com/team",), ("Example.com/contact",)) == keys
    assert DEFAULT_KEYS == KeptKeyFlags().keys() == Options().kept_keys


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("", "name part must be non-empty"),
        ("team=red", "name part must consist of alphanumeric characters"),
        ("app.kubernetes.io/*", "name part must consist of alphanumeric characters"),
        ("a/b/c", "a valid label key must consist of"),
        ("/team", "prefix part must be non-empty"),
        ("x" * 64, "name part must be no more than 63 bytes"),
    ],
)
def test_a_key_that_no_object_can_have_is_refused(key: str, error: str) -> None:
    """In the words of the API server, with the flag and an example."""
    with pytest.raises(UsageError) as of_label:
        KeptKeyFlags(keep_labels=(key,)).keys()
    with pytest.raises(UsageError) as of_annotation:
        KeptKeyFlags(keep_annotations=(key,)).keys()
    assert str(of_label.value).startswith(f"--keep-label {key}: {error}")
    assert str(of_annotation.value).startswith(f"--keep-annotation {key}: {error}")
    assert str(of_label.value).endswith("Write a key alone, such as team or example.com/team")


def test_the_prefix_of_a_label_is_in_lower_case() -> None:
    """As on the server; that of an annotation need not be."""
    with pytest.raises(UsageError, match="prefix part a lowercase RFC 1123 subdomain"):
        KeptKeyFlags(keep_labels=("Example.com/team",)).keys()


def test_a_scan_with_a_bad_key_does_not_start(assay: Assay) -> None:
    """The exit code is that of a usage error; nothing is printed on standard output."""
    ran = assay("scan", "--from", "-", "--keep-label", "team=red")
    assert (2, b"", True) == (ran.code, ran.stdout, "--keep-label team=red: name part" in ran.stderr)

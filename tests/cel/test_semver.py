"""Semantic versions: parsing, comparison and errors."""

from __future__ import annotations

import pytest

from scanner.cel import Environment, EvaluationError, compile

VALUES = [
    ("semver('1.2.3').major()", 1),
    ("semver('1.2.3').minor()", 2),
    ("semver('1.2.3').patch()", 3),
    ("semver('18446744073709551615.0.0').major()", -1),
    ("semver('9223372036854775808.0.0').major()", -(2**63)),
    ("semver('1.2.3') == semver('1.2.3+build.1')", True),
    ("semver('1.2.3-a') == semver('1.2.3')", False),
    ("semver('1.2.3').isGreaterThan(semver('1.2.3-rc.1'))", True),
    ("semver('1.2.3-alpha.10').isGreaterThan(semver('1.2.3-alpha.9'))", True),
    ("semver('1.2.3-alpha.1').isGreaterThan(semver('1.2.3-alpha'))", True),
    ("semver('1.2.3-1').isLessThan(semver('1.2.3-a'))", True),
    ("semver('1.2.3-A').isLessThan(semver('1.2.3-a'))", True),
    ("semver('1.10.0').isLessThan(semver('1.9.0'))", False),
    ("semver('1.0.0').compareTo(semver('1.2.3'))", -1),
    ("semver('1.2.3+a').compareTo(semver('1.2.3+b'))", 0),
    ("semver('2.0.0').compareTo(semver('1.2.3'))", 1),
    ("semver('v01.01', true) == semver('1.1.0')", True),
    ("semver('v1', true) == semver('1.0.0')", True),
    ("semver('1.2.03-x', true) == semver('1.2.3-x')", True),
    ("semver('000.0.0', true) == semver('0.0.0')", True),
    ("isSemver('01.01.01')", False),
    ("isSemver('01.01.01', true)", True),
    ("isSemver(' 1.0.0', true)", False),
    ("isSemver('1.0.0 ', true)", False),
    ("isSemver('', true)", False),
    ("isSemver('1.0', true)", True),
    ("isSemver('1.0', false)", False),
    ("isSemver('1.2.3-beta.1+build.1')", True),
    ("isSemver('1234.56789012345.67890123456789')", True),
    ("semver('1.2.3') in [semver('1.2.3+a')]", True),
    ("dyn(semver('1.2.3')) == null", False),
    ("1 == dyn(semver('1.2.3'))", False),
    ("dyn(semver('1.2.3')) != 1", True),
]
ERRORS = [
    ("semver('')", "Version string empty"),
    ("semver('v1.0')", "No Major.Minor.Patch elements found"),
    ("semver('v1.0.0')", 'Invalid character(s) found in major number "v1"'),
    ("semver('1.x.0')", 'Invalid character(s) found in minor number "x"'),
    ("semver('1.0.-')", 'strconv.ParseUint: parsing "": invalid syntax'),
    ("semver('1.0.0 ')", 'Invalid character(s) found in patch number "0 "'),
    ("semver('01.0.0')", 'Major number must not contain leading zeroes "01"'),
    ("semver('1.00.0')", 'Minor number must not contain leading zeroes "00"'),
    ("semver('1.0.01')", 'Patch number must not contain leading zeroes "01"'),
    ("semver('1.0.0-')", "Prerelease is empty"),
    ("semver('1.0.0-a..b')", "Prerelease is empty"),
    ("semver('1.0.0-01')", 'Numeric PreRelease version must not contain leading zeroes "01"'),
    ("semver('1.0.0-é')", 'Invalid character(s) found in prerelease "é"'),
    ("semver('1.0.0+')", "Build meta data is empty"),
    ("semver('1.0.0+a_b')", 'Invalid character(s) found in build meta data "a_b"'),
    ("semver('..')", 'strconv.ParseUint: parsing "": invalid syntax'),
    ("semver('18446744073709551616.0.0')", 'strconv.ParseUint: parsing "18446744073709551616": value out of range'),
    ("semver('1.0.0-99999999999999999999')", 'strconv.ParseUint: parsing "99999999999999999999": value out of range'),
    ("semver('1.0-rc1', true)", "short version cannot contain PreRelease/Build meta data"),
    ("semver('vv1', true)", 'Invalid character(s) found in major number "0v1"'),
    ("semver('é', true)", 'Invalid character(s) found in major number "0é"'),
    ("dyn(semver('1.2.3')) == 1", "no such overload"),
    ("string(dyn(semver('1.2.3')))", "no such overload: string(kubernetes.Semver)"),
    ("dyn(semver('1.2.3')).all(x, true)", "got 'cel.Semver', expected iterable type"),
    ("dyn(semver('1.2.3')).foo", "no such key: foo"),
]


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_values(text: str, expected: object) -> None:
    """Versions parse strictly, or leniently on request, and compare by precedence."""
    assert expected == compile(text, Environment()).evaluate({})


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_errors(text: str, message: str) -> None:
    """A malformed version is an error in upstream's words."""
    with pytest.raises(EvaluationError) as caught:
        compile(text, Environment()).evaluate({})
    assert message == str(caught.value)


def test_versions_came_with_kubernetes_1_33() -> None:
    """`semver` exists from 1.33 on, and not before."""
    assert Environment(version=(1, 32)).function("semver") is None
    assert Environment(version=(1, 33)).function("semver") is not None

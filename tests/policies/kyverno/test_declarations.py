"""The environment of each release has the declarations that Kyverno itself makes, and code for all of them."""

from __future__ import annotations

import json

import pytest

from scanner import cel
from scanner.cel.functions import load_functions
from scanner.cel.functions.declaration import Overload
from scanner.cel.syntax.macros import find_macro
from scanner.cel.types.type_system import Type
from scanner.model.release import Minor, minor_of
from scanner.policies.kyverno.libraries import environment
from scanner.policies.kyverno.libraries.declared import Signature, declarations
from scripts import generate_kyverno_declarations as generator
from tests.requirements import KYVERNO

RELEASES = generator.RELEASES
ELSEWHERE = frozenset({"in", "_in_", "__not_strictly_false__", "cel.@block", "time.now"})
"""Functions that are none here: old names of operators, what only an optimizer calls, and a macro."""


def minor(release: str) -> Minor:
    """The release as a pair of numbers."""
    number = minor_of(release)
    assert number is not None
    return number


@pytest.mark.parametrize("release", RELEASES)
def test_the_data_are_what_kyverno_declares(release: str) -> None:
    """`declarations.json` has each declaration that the program linked with a release prints, and no other one."""
    printed = generator.declared_by(KYVERNO[release].require())
    written = json.loads(generator.TARGET.read_text())
    assert generator.of_release(printed) == generator.rows_of(written, release)


@pytest.mark.parametrize("namespaced", [False, True], ids=["cluster", "namespaced"])
@pytest.mark.parametrize("release", RELEASES)
def test_every_declared_function_has_code(release: str, *, namespaced: bool) -> None:
    """The functions of an environment have the declared overloads, with the declared types, and no others."""
    declared = declarations(release, namespaced=namespaced).functions
    own = environment(minor(release), namespaced=namespaced)
    functions = load_functions(own.version, own.features, own.extras)
    expected = {shown(name, each) for name, signatures in declared.items() for each in signatures}
    actual = {shown(name, each) for name, function in functions.items() for each in function.overloads}
    assert {row for row in expected if row[0] not in ELSEWHERE} == actual


@pytest.mark.parametrize("release", RELEASES)
def test_every_macro_is_expanded(release: str) -> None:
    """An environment has the macros that a release declares."""
    own = environment(minor(release), namespaced=False)
    missing = {
        (name, size, member)
        for name, size, member in declarations(release, namespaced=False).macros
        if (name, -1 if size == "*" else int(size), member) not in own.macros
        and find_macro(name, -1 if size == "*" else int(size), own.version, member=member) is None
    }
    assert set() == missing


def shown(name: str, overload: Signature | Overload) -> tuple[str, ...]:
    """The signature of an overload as texts, with type parameters by the order in which they occur."""
    parameters: dict[str, str] = {}

    def text(type_: Type) -> str:
        if type_.family == "parameter":
            return parameters.setdefault(type_.name, f"T{len(parameters)}")
        inner = f"({', '.join(map(text, type_.parameters))})" if type_.parameters else ""
        return f"{type_.declared_name()}{inner}"

    return (name, "member" if overload.member else "global", *map(text, overload.arguments), text(overload.result))


def compile_error(text: str, release: str = "1.19", *, namespaced: bool = False) -> str:
    """The text of the error of an expression that does not compile; empty for one that compiles."""
    try:
        cel.compile(text, environment(minor(release), namespaced=namespaced))
    except cel.CompileError as error:
        return error.detail
    return ""


@pytest.mark.parametrize(
    ("since", "text"),
    [
        ("1.18", "request.object.metadata.name != ''"),
        ("1.18", "request.oldObject == null"),
        ("1.18", "resource.get('v1', 'pods', 'a', 'b').kind == 'Pod'"),
        ("1.18", "gzip.decompress(gzip.compress('a')) == 'a'"),
        ("1.18", "json.marshal(1) == '1'"),
        ("1.18", "user.parseServiceAccount('a').Name == ''"),
        ("1.17", "json.unmarshal('1') == 1.0"),
        ("1.17", "sha256('a') != ''"),
        ("1.17", "time.now() > timestamp(0)"),
        ("1.17", "x509.decode('a') == null"),
        ("1.19", "regex.replace('a', 'b', 'c') == 'a'"),
        ("1.19", "image('nginx').identifierWithSeparator() == ':latest'"),
        ("1.19", "has(object.metadata.labels.`example.com/team`)"),
        ("1.16", "image.GetMetadata('a') != null"),
    ],
)
def test_an_expression_compiles_since_the_release_that_declares_its_names(since: str, text: str) -> None:
    """An expression does not compile in the releases before the one that declares what it uses."""
    compiles = [release for release in RELEASES if not compile_error(text, release)]
    assert list(RELEASES[RELEASES.index(since) :]) == compiles


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            "expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)",
            "resource.List('v1', 'pods', 'team').items.all(i, i.metadata.name == 'p')",
        ),
        ("undeclared reference to 'Put' (in container '')", "http.Put('https://example.com', {'a': 1}) == null"),
        ("found no matching overload for '_!=_' applied to '(bytes, string)'", "gzip.compress('a') != 'b'"),
    ],
)
def test_kyverno_does_not_load_a_policy_with_these_expressions(error: str, text: str) -> None:
    """The types of Kyverno's functions make an expression a compile error, although it has a value for some objects."""
    assert error in compile_error(text)

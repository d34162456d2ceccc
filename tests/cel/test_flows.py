"""The inputs that an expression returns unchanged, and the inputs from which it computes a value."""

from __future__ import annotations

import pytest

from scanner import cel

ENVIRONMENT = cel.allow_patches(cel.Environment().add_variable("v", cel.DYN))
VARIABLES = {
    "all": "object.containers + object.?initContainers.orValue([])",
    "values": "object.containers.map(c, c.value)",
    "upper": "object.a.upperAscii()",
}


def flow(text: str) -> tuple[set[str], set[str]]:
    """Return the paths that are carried and the paths that are computed from, with dots."""
    programs = {name: cel.compile(text, ENVIRONMENT) for name, text in VARIABLES.items()}
    environment = ENVIRONMENT
    for name in VARIABLES:
        environment = environment.add_variable(name, cel.DYN)
    resolved = cel.follow_variables(
        cel.compile(text, environment).flow(),
        lambda name: [programs[name].flow()] if name in programs else [program.flow() for program in programs.values()],
    )
    assert resolved is not None
    return {".".join(path) for path in resolved.carried}, {".".join(path) for path in resolved.computed}


@pytest.mark.parametrize(
    ("text", "carried", "computed"),
    [
        ("object.a", {"object.a"}, set()),
        ("'it is ' + string(object.a)", {"object.a"}, set()),
        ("object.a.upperAscii()", set(), {"object.a"}),
        ("object.a == 'x' ? object.b : object.c", {"object.b", "object.c"}, {"object.a"}),
        ("object.a[object.b]", {"object.a.*"}, {"object.b"}),
        ("has(object.a.b)", set(), {"object.a.#"}),
        ("object.a.size()", set(), {"object.a.#"}),
        ("[object.a].join('').size()", set(), {"object.a.#"}),
        ("object.l.filter(c, c.n == 'x').map(c, c.m)", {"object.l.*.m"}, {"object.l.#", "object.l.*.n"}),
        ("object.l.map(c, c.m).join(', ')", {"object.l.*.m"}, {"object.l.#"}),
        ("object.l.all(c, c.m == 'x')", set(), {"object.l.#", "object.l.*.m"}),
        ("(object.a + object.b).map(c, c.m)", {"object.a.*.m", "object.b.*.m"}, {"object.a.#", "object.b.#"}),
        ("{object.a: object.b}", {"object.b"}, {"object.a"}),
        ("{'x': object.b}.x", {"object.b"}, set()),
        ("[[object.a]].map(x, x[0])", {"object.a"}, set()),
        ("object.m.transformList(k, v, v.x)", {"object.m.*.x"}, {"object.m.#"}),
        ("object.?a.optMap(x, x.b).orValue('')", {"object.a.b"}, {"object.a.#"}),
        ("variables.all.map(c, c.name)", {"object.containers.*.name", "object.initContainers.*.name"},
         {"object.containers.#", "object.initContainers.#"}),
        ("variables.values.join('')", {"object.containers.*.value"}, {"object.containers.#"}),
        ("variables.values[0].lowerAscii()", set(), {"object.containers.*.value", "object.containers.#"}),
        ("variables.upper", set(), {"object.a"}),
        ("dyn(variables)['up' + 'per']", {"object.containers", "object.initContainers", "object.containers.*.value"},
         {"object.containers.#", "object.a"}),
        ('JSONPatch{op: "add", path: "/a/" + object.b, value: object.c}', {"object.c"}, {"object.b"}),
        ('JSONPatch{op: "copy", from: "/a/b~1c", path: "/d"}', set(), {"object.a.b/c"}),
        ('JSONPatch{op: "co" + "py", from: "/a", path: "/d"}', set(), {"object.a"}),
        ('JSONPatch{op: "move", from: "/" + object.b, path: "/d"}', set(), {"object", "object.b"}),
    ],
)  # fmt: skip
def test_carried_and_computed_paths(text: str, carried: set[str], computed: set[str]) -> None:
    """Paths lead through lists and maps that were made, filtered or joined, and through variables."""
    assert (carried, computed) == flow(text)

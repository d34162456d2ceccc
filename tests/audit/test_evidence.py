"""What a finding rests on, and what of it is said."""

from __future__ import annotations

import base64
from json import dumps
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from scanner.audit.evidence import MOST
from scanner.audit.evidence.redaction import WITHHELD
from scanner.audit.sensitive_fields import MASK
from scanner.model.evidence import Evidence, Reason
from scanner.model.resource import LAST_APPLIED
from tests.documents import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PODS,
    SECRETS,
    Document,
    binding,
    namespace,
    policy,
    rule,
    thing,
)
from tests.scan.fakes import FakeCluster, scanned

EVERYTHING = {"resourceRules": [rule("secrets", "pods", "configmaps"), rule("deployments", group="apps")]}
ENV = [{"name": "TOKEN", "value": "opensesame"}, {"name": "MODE", "value": "dev"}]
POD = thing(
    PODS,
    "web",
    "default",
    metadata={
        "labels": {"app": "web"},
        "annotations": {LAST_APPLIED: '{"env":"opensesame"}', "db-password": "hunter2"},
    },
    spec={
        "containers": [
            {"name": "app", "image": "registry.example.com/app:1", "env": ENV, "args": ["--password=hunter2", "-v"]},
            {"name": "proxy", "image": "envoy"},
        ]
    },
)


def evidence(subject: Document, *expressions: str, more: tuple[Document, ...] = (), **spec: Any) -> list[Evidence]:
    """Why an object of the namespace default is found to be wrong, by each finding."""
    manifest = policy("p", *expressions, **{"matchConstraints": EVERYTHING, **spec})
    told = scanned(FakeCluster([namespace("default"), subject, *more, manifest, binding(**spec.pop("bound", {}))]))
    return [finding.evidence for finding in told.findings]


def why(subject: Document, expression: str, **spec: Any) -> list[tuple[str, str, str]]:
    """Part, value and path of each reason of the only finding."""
    [found] = evidence(subject, expression, **spec)
    return [(it.expression, it.value, it.path) for it in found.reasons]


def test_a_violation_says_what_decided_it() -> None:
    """The value, and where in the object it stands."""
    expected = [("c.image", '"envoy"', "spec.containers[1].image")]
    assert expected == why(POD, "object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))")


@pytest.mark.parametrize("length", [100, 400])
def test_a_long_chain_of_variables_is_followed(length: int) -> None:
    """An explanation gets as much room on the stack as the evaluation that it explains."""
    first = {"name": "v0", "expression": "object.metadata.name"}
    others = [{"name": f"v{at}", "expression": f"variables.v{at - 1} + 'x'"} for at in range(1, length)]
    [found] = evidence(POD, f"variables.v{length - 1} == 'web'", variables=[first, *others])

    assert found.reasons
    assert "internal error" not in str(found)


def test_an_error_says_where_it_came_from() -> None:
    """The part that failed, and what it said."""
    expected = [Evidence((Reason("object.spec.missing", "no such key: missing", "spec.missing", erred=True),))]
    assert expected == evidence(POD, "object.spec.missing == 1")


def test_what_passes_says_nothing() -> None:
    """There is no finding to say it with."""
    assert [] == evidence(POD, "object.spec.containers.size() == 2")


def test_match_conditions_that_err_are_explained() -> None:
    """By the conditions that did, and not by those that held."""
    conditions = [
        {"name": "holds", "expression": "object.metadata.name == 'web'"},
        {"name": "errs", "expression": "object.spec.a == 1"},
        {"name": "errs-too", "expression": "object.spec.b == 1"},
    ]
    [found] = evidence(POD, "true", matchConditions=conditions)
    assert ["spec.a", "spec.b"] == [it.path for it in found.reasons]


def test_an_audit_annotation_that_errs_is_explained() -> None:
    """It sees the whole namespace."""
    annotations = [{"key": "k", "valueExpression": "namespaceObject.metadata.annotations.owner"}]
    [found] = evidence(POD, auditAnnotations=annotations)
    assert ["namespaceObject.metadata.annotations.owner"] == [it.path for it in found.reasons]


def test_a_variable_is_told_with_what_decided_it() -> None:
    """The parts of its own expression say whose they are."""
    variables = [
        {"name": "images", "expression": "object.spec.containers.map(c, c.image)"},
        {"name": "trusted", "expression": "variables.images.all(i, i.contains('/'))"},
    ]
    [found] = evidence(POD, "variables.trusted", variables=variables)
    expected = (
        Reason("variables.trusted", "false", "variables.trusted"),
        Reason("i", '"envoy"', "spec.containers[1].image", "trusted"),
    )
    assert expected == found.reasons


def test_params_are_named() -> None:
    """A path into a param begins with `params`."""
    limits = thing(CONFIG_MAPS, "limits", "default", data={"name": "db"})
    bound = {"paramRef": {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}}
    manifest = policy(
        "p", "object.metadata.name == params.data.name", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}
    )
    told = scanned(FakeCluster([namespace("default"), POD, limits, manifest, binding("b", "p", **bound)]))
    [found] = [finding.evidence.reasons for finding in told.findings]
    assert [('"web"', "metadata.name"), ('"db"', "params.data.name")] == [(it.value, it.path) for it in found]


def test_long_values_are_cut() -> None:
    """Their beginning, and how long they are."""
    [(_, value, _)] = why(thing(CONFIG_MAPS, "c", "default", data={"a": "x" * 5000}), "object.data.a == ''")
    assert f'"{"x" * 239}… [5,000 characters]' == value


def test_many_reasons_are_cut() -> None:
    """It is said how many there would be."""
    text = " || ".join(f"object.data.k{at} == 'x'" for at in range(15))
    [found] = evidence(thing(CONFIG_MAPS, "c", "default", data={f"k{at}": "y" for at in range(15)}), text)
    assert (MOST, 15 - MOST) == (len(found.reasons), found.left_out)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "1"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ("a\n", '"a\\n"'),
        ([1, "a"], '[1, "a"]'),
        ({"a": {"b": []}}, '{"a": {"b": []}}'),
    ],
)
def test_values_read_as_in_cel(value: object, expected: str) -> None:
    """Whatever they are."""
    subject = thing(CONFIG_MAPS, "c", "default", data={"a": value})
    assert [("object.data.a", expected, "data.a")] == why(subject, "dyn(object.data.a) == 'other'")


def encoded(text: str) -> str:
    """As a Secret holds it."""
    return base64.b64encode(text.encode()).decode()


def a_secret(text: str) -> Document:
    """A Secret with a password, and with everything that repeats it."""
    annotations = {LAST_APPLIED: f'{{"data":{{"password":"{encoded(text)}"}}}}', "note": "harmless"}
    return thing(
        SECRETS,
        "creds",
        "default",
        metadata={"annotations": annotations, "labels": {"app": "web"}},
        data={"password": encoded(text)},
        stringData={"password": text},
        type="Opaque",
    )


READING = [
    ("object.data.password == ''", [("object.data.password", WITHHELD, "data.password")]),
    (
        "object.data.password.lowerAscii() == ''",
        [("object.data.password", WITHHELD, "data.password")],
    ),
    ("object.data.all(k, v, v == '')", [("v", WITHHELD, "data.password")]),
    ("object.data.all(k, k == '')", [("k", WITHHELD, "data.password")]),
    ("object.data.map(k, object.data[k]).all(v, v == '')", [("v", WITHHELD, "data.password")]),
    ("object.data['pass' + 'word'] == ''", [("object.data['pass' + 'word']", WITHHELD, "data.password")]),
    ("object.?data.?password.orValue('') == ''", [("object.?data.?password", WITHHELD, "data.password")]),
    ("[object].all(o, o.data.password == '')", [("o.data.password", WITHHELD, "data.password")]),
    ("variables.all.password == ''", [("variables.all.password", WITHHELD, "data.password")]),
    (
        "variables.plain == ''",
        [("variables.plain", WITHHELD, "variables.plain"), ("object.data.password", WITHHELD, "data.password")],
    ),
    (
        "object.stringData.password.lowerAscii() == ''",
        [("object.stringData.password", WITHHELD, "stringData.password")],
    ),
    ("object == {'a': 1}", [("object", WITHHELD, "object")]),
    ("object.metadata.annotations.all(k, v, v == '')", None),
    ("int(object.data.password) > 1", None),
    ("object.metadata.labels[object.data.password] == ''", None),
    ("(object.data.password == 'x' ? 'a' : 'b').startsWith('c')", None),
    ("object.data.password.size() == 1", None),
    ("object.data.map(k, object.data[k]).join(',').split('').size() == 1000", None),
    ("dyn([{'k': object.data}]).all(e, e.k.password == '')", None),
    ("object.data.transformMap(k, v, v + '!').all(k, v, v == '')", None),
    ("object.metadata.annotations[variables.lastApplied].contains('x')", None),
    ("[object.data].exists_one(d, d.password == 'x')", None),
    ("object.data.map(k, int(object.data[k])).size() == 1", None),
    ("object.data.all(k, v, int(v) > 1)", None),
    ("[object.data.password].filter(v, v.matches(v) && int(v) > 1).size() == 1", None),
]
VARIABLES = [
    {"name": "all", "expression": "object.data"},
    {"name": "plain", "expression": "has(object.data) ? object.data.password.lowerAscii() : ''"},
    {"name": "lastApplied", "expression": f"'{LAST_APPLIED}'"},
]


@pytest.mark.parametrize(("expression", "expected"), [(one, other) for one, other in READING if other])
def test_the_data_of_a_secret_is_withheld(expression: str, expected: list[tuple[str, str, str]]) -> None:
    """However it is read; the path ends where the policy's own words end."""
    assert expected == [it for it in why(a_secret("hunter2"), expression, variables=VARIABLES) if it[1] != "true"]


@given(
    st.sampled_from([expression for expression, _ in READING]),
    st.text("ABCxyz019_-", min_size=8, max_size=20),
)
@settings(max_examples=150, deadline=None)
@example(READING[0][0], "hunter2-very-secret")
def test_no_evidence_has_any_of_a_secret(expression: str, text: str) -> None:
    """Neither the value nor its encoded form, nor a part of them that is long enough to be one."""
    assume(not any(text[at : at + 4] in expression + LAST_APPLIED + WITHHELD for at in range(len(text) - 3)))
    found = str(evidence(a_secret(text), expression, variables=VARIABLES)).lower()
    shown = [text[at : at + 5].lower() for at in range(len(text) - 4)] + [encoded(text)[:8].lower(), text[:5].lower()]
    assert [] == [part for part in shown if part in found]


def test_a_key_that_the_policy_does_not_name_is_no_part_of_a_path() -> None:
    """It may itself have been computed from a secret."""
    found = why(a_secret("hunter2"), "object.data.all(k, v, v == '')")
    assert [("v", WITHHELD, "data")] == found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("has(object.data.token)", [("has(object.data.token)", "false", "data.token")]),
        ("object.metadata.labels.app == 'db'", [("object.metadata.labels.app", '"web"', "metadata.labels.app")]),
        ("object.type == 'x'", [("object.type", '"Opaque"', "type")]),
        ("size(object.data) > 5", [("size(object.data)", "1", "data")]),
        ("object.data.missing == ''", [("object.data.missing", "no such key: missing", "data.missing")]),
    ],
)
def test_what_is_no_secret_in_a_secret_is_said(expression: str, expected: list[tuple[str, str, str]]) -> None:
    """Whether something is there, how many there are, its labels and its type."""
    assert expected == why(a_secret("hunter2"), expression)


def test_a_param_can_be_a_secret() -> None:
    """Its data is as secret as the object's."""
    manifest = policy(
        "p", "object.metadata.name == params.data.password", paramKind={"apiVersion": "v1", "kind": "Secret"}
    )
    bound = {"paramRef": {"name": "creds", "namespace": "default", "parameterNotFoundAction": "Deny"}}
    told = scanned(FakeCluster([namespace("default"), POD, a_secret("hunter2"), manifest, binding("b", "p", **bound)]))
    [found] = [finding.evidence.reasons for finding in told.findings]
    assert ['"web"', WITHHELD] == [it.value for it in found]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (
            "object.spec.containers[0].env.all(e, e.value == 'dev')",
            [("e.value", WITHHELD, "spec.containers[0].env[0].value")],
        ),
        (
            "object.spec.containers[0].env.map(e, e.value.lowerAscii()).all(v, v == '')",
            [("v", WITHHELD, "")],
        ),
        (
            "object.spec.containers[0].env[0] == {'name': 'x'}",
            [
                (
                    "object.spec.containers[0].env[0]",
                    f'{{"name": "TOKEN", "value": "{MASK}"}}',
                    "spec.containers[0].env[0]",
                )
            ],
        ),
        (
            "object.spec.containers.filter(c, c.name == 'app')[0].env == []",
            [
                (
                    "object.spec.containers.filter(c, c.name == 'app')[0].env",
                    f'[{{"name": "TOKEN", "value": "{MASK}"}}, {{"name": "MODE", "value": "{MASK}"}}]',
                    "spec.containers[0].env",
                )
            ],
        ),
        (
            "object.spec.containers.all(c, !has(c.args) || c.args == ['-v'])",
            [
                ("has(c.args)", "true", "spec.containers[0].args"),
                ("c.args", f'["--password={MASK}", "-v"]', "spec.containers[0].args"),
            ],
        ),
        (
            "object.metadata.annotations['db-password'] == ''",
            [("object.metadata.annotations['db-password']", WITHHELD, "metadata.annotations.db-password")],
        ),
        (
            "object.metadata.annotations == {}",
            [
                (
                    "object.metadata.annotations",
                    f'{{"{LAST_APPLIED}": "{MASK}", "db-password": "{MASK}"}}',
                    "metadata.annotations",
                )
            ],
        ),
        (
            "object.metadata.annotations.map(k, object.metadata.annotations[k]).join(' ') == ''",
            None,
        ),
        ("string(object.spec.containers[0].env[0].value.size()) == ''", None),
    ],
)
def test_other_objects_hold_secrets_too(expression: str, expected: list[tuple[str, str, str]] | None) -> None:
    """Environment variables, what is named like a password, kubectl's copy: masked where they stand, withheld beyond."""
    found = why(POD, expression)
    assert (expected or found) == found
    assert not any(secret in str(found) for secret in ("opensesame", "hunter2"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://app:hunter2@db:5432/x", f"postgres://app:{MASK}@db:5432/x"),
        ("token: hunter2, mode: dev", f"token: {MASK}, mode: dev"),
        ('{"apiKey": "hunter2"}', f'{{"apiKey": "{MASK}"}}'),
        ("-----BEGIN RSA PRIVATE KEY-----\nhunter2", f"-----BEGIN RSA PRIVATE KEY-----{MASK}"),
        ("eyJhbGciOiJ9.eyJzdWIiOiIx.c2lnbmF0dXJl", MASK),
        ("registry/secret-store:1.2", "registry/secret-store:1.2"),
    ],
)
def test_passwords_in_texts_are_masked(text: str, expected: str) -> None:
    """Where a text calls them so, and nowhere else."""
    [(_, value, _)] = why(thing(CONFIG_MAPS, "c", "default", data={"a": text}), "object.data.a == ''")
    assert dumps(expected) == value


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (
            "object.metadata.labels[object.spec.containers[0].env[0].value.upperAscii()] == ''",
            [
                (
                    "object.metadata.labels[object.spec.containers[0].env[0].value.upperAscii()]",
                    WITHHELD,
                    "metadata.labels",
                )
            ],
        ),
        (
            "namespaceObject.metadata.annotations['db-password'] == ''",
            [
                (
                    "namespaceObject.metadata.annotations['db-password']",
                    WITHHELD,
                    "namespaceObject.metadata.annotations.db-password",
                )
            ],
        ),
        ("variables.apiToken == ''", [("variables.apiToken", WITHHELD, "variables.apiToken")]),
        ("has(object.spec.token)", [("has(object.spec.token)", "false", "spec.token")]),
    ],
)
def test_names_and_keys_give_nothing_away(expression: str, expected: list[tuple[str, str, str]]) -> None:
    """A key that was computed from a secret is no part of a path, and what is called a token is one."""
    variables = [{"name": "apiToken", "expression": "'opensesame'.upperAscii() + object.metadata.name"}]
    manifest = policy("p", expression, variables=variables)
    place = namespace("default")
    place["metadata"]["annotations"] = {"db-password": "hunter2"}
    told = scanned(FakeCluster([place, POD, manifest, binding()]))
    found = [it for finding in told.findings for it in finding.evidence.reasons]
    assert expected == [(it.expression, it.value, it.path) for it in found][:1]
    assert not any(secret in repr(found).lower() for secret in ("opensesame", "hunter2"))


@pytest.mark.parametrize("expression", ["variables.letters", "object.data.password.split('')"])
def test_the_length_of_a_secret_is_one(expression: str) -> None:
    """Neither how many parts it has is said, nor which of them decided."""
    variables = [{"name": "letters", "expression": "object.data.password.split('')"}]
    found = [
        str(evidence(a_secret(text), f"{expression}.exists(l, l == '!')", variables=variables))
        for text in ("hunter2", "hunter2-hunter2-hunter2")
    ]
    assert found[0] == found[1]


def test_the_requester_is_not_told_in_full() -> None:
    """The name and the groups are in the report anyway; whatever else an authenticator says is nobody's business."""
    [(_, value, _)] = why(POD, "dyn(request.userInfo) == {'username': 'jane'}")
    assert WITHHELD == value


def test_evidence_stands_in_the_real_object() -> None:
    """A controller's Pod template is looked at where it is."""
    spec = {"template": {"spec": {"containers": [{"name": "app", "image": "nginx"}]}}}
    subject = thing(DEPLOYMENTS, "web", "default", spec=spec)
    expected = [("c.image", '"nginx"', "spec.template.spec.containers[0].image")]
    assert expected == why(subject, "object.spec.template.spec.containers.all(c, c.image == 'x')")


def test_the_same_scan_gives_the_same_evidence() -> None:
    """No order depends on chance."""
    asked = "object.metadata.labels.all(k, v, v == 'x') && object.spec.containers.exists(c, c.name == 'x')"
    assert evidence(POD, asked) == evidence(POD, asked)


SHAPES = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(st.sampled_from("ab#*"), st.sampled_from(["x", "y"]), max_size=2),
        "env": st.lists(st.sampled_from(["opensesame", "registry.example.com"]), max_size=1),
        "images": st.lists(st.sampled_from(["registry.example.com/a", "b"]), max_size=3),
        "priority": st.sampled_from([None, 1, 1.0, "1", [1], {}]),
    }
)


def shaped(name: str, shape: dict[str, Any]) -> Document:
    """A Pod of some shape."""
    env = [{"name": "A", "value": value} for value in shape["env"]]
    containers = [{"name": f"c{at}", "image": image, "env": env} for at, image in enumerate(shape["images"])]
    spec = {"containers": containers, "priority": shape["priority"]}
    return thing(PODS, name, "default", metadata={"labels": shape["labels"], "uid": name}, spec=spec)


@given(st.lists(SHAPES, min_size=2, max_size=6))
@settings(max_examples=30, deadline=None)
def test_evidence_that_is_remembered_is_that_of_the_object(shapes: list[dict[str, Any]]) -> None:
    """Objects that were looked at before change nothing of what is said about the next."""
    asked = [
        "object.spec.containers.all(c, c.image.startsWith('registry'))",
        "object.spec.priority > dyn(0) && has(object.metadata.labels.a)",
        "object.metadata.labels.all(k, v, v == 'x') && variables.first != 'b'",
        "object.metadata.labels.all(k, k == 'a') && object.spec.containers.exists(c, c.env.size() > 0)",
        "object.spec.containers.map(c, c.image).filter(i, i != 'b').size() > 1",
        "(object.spec.containers + object.spec.containers).all(c, c.name in object.metadata.labels)",
        "object.spec.containers[object.metadata.labels.size()].env[0].value == 'x'",
        "object.spec.containers.all(c, c.env.all(e, object.spec.containers.exists(d, d.image == e.value)))",
        "object.spec.containers.exists(c, !has(c.env[0].name)) || object.metadata.labels['#'] == 'x'",
        "variables.named.all(n, n != 'c1') && object.spec.priority in [1]",
        "object.spec.containers.exists_one(c, c.image == object.metadata.?labels[?'*'].orValue('b'))",
    ]
    variables = [
        {"name": "first", "expression": "object.spec.containers[0].image"},
        {"name": "named", "expression": "object.spec.containers.filter(c, c.image == 'b').map(c, c.name)"},
    ]
    manifest = policy("p", *asked, matchConstraints=EVERYTHING, variables=variables)
    pods = [shaped(f"p{at}", shape) for at, shape in enumerate(shapes)]

    def found(*subjects: Document) -> list[tuple[str, int, Evidence]]:
        told = scanned(FakeCluster([namespace("default"), *subjects, manifest, binding()]))
        return sorted(((it.name, it.check.index, it.evidence) for it in told.findings), key=str)

    alone = sorted((one for subject in pods for one in found(subject)), key=str)
    assert [str(one) for one in alone] == [str(one) for one in found(*pods)]

"""The evidence of findings: the values that decided them, without secrets."""

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
from scanner.model.outcome import Evidence, Reason
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
    """The evidence of each finding about an object of the namespace `default`."""
    manifest = policy("p", *expressions, **{"matchConstraints": EVERYTHING, **spec})
    recorded = scanned(FakeCluster([namespace("default"), subject, *more, manifest, binding(**spec.pop("bound", {}))]))
    return [finding.evidence for finding in recorded.findings]


def reasons_of(subject: Document, expression: str, **spec: Any) -> list[tuple[str, str, str]]:
    """Expression, value and path of each reason of the only finding."""
    [finding] = evidence(subject, expression, **spec)
    return [(reason.expression, reason.value, reason.path) for reason in finding.reasons]


def test_a_violation_has_the_value_that_decided_it() -> None:
    """The evidence states the value and its place in the object."""
    expected = [("c.image", '"envoy"', "spec.containers[1].image")]
    assert expected == reasons_of(POD, "object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))")


@pytest.mark.parametrize("length", [100, 400])
def test_a_long_chain_of_variables_is_followed(length: int) -> None:
    """An explanation has as much room on the stack as the evaluation that it explains."""
    first = {"name": "v0", "expression": "object.metadata.name"}
    others = [{"name": f"v{at}", "expression": f"variables.v{at - 1} + 'x'"} for at in range(1, length)]
    [explained] = evidence(POD, f"variables.v{length - 1} == 'web'", variables=[first, *others])

    assert explained.reasons
    assert "internal error" not in str(explained)


def test_an_error_has_the_place_where_it_occurred() -> None:
    """The evidence states the part that failed, and its error."""
    reason = Reason("object.spec.missing", "no such key: missing", "spec.missing", erred=True)
    assert [Evidence((reason,), excerpt='spec: {"containers": […]}')] == evidence(POD, "object.spec.missing == 1")


def test_a_pass_has_no_evidence() -> None:
    """An object that passes has no finding."""
    assert [] == evidence(POD, "object.spec.containers.size() == 2")


def test_match_conditions_that_err_are_explained() -> None:
    """The evidence has the conditions that failed, and not those that were true."""
    conditions = [
        {"name": "holds", "expression": "object.metadata.name == 'web'"},
        {"name": "errs", "expression": "object.spec.a == 1"},
        {"name": "errs-too", "expression": "object.spec.b == 1"},
    ]
    [explained] = evidence(POD, "true", matchConditions=conditions)
    assert ["spec.a", "spec.b"] == [reason.path for reason in explained.reasons]


def test_an_audit_annotation_that_errs_is_explained() -> None:
    """The second evaluation has the whole Namespace object, as the first has."""
    annotations = [{"key": "k", "valueExpression": "namespaceObject.metadata.annotations.owner"}]
    [explained] = evidence(POD, auditAnnotations=annotations)
    assert ["namespaceObject.metadata.annotations.owner"] == [reason.path for reason in explained.reasons]


def test_a_variable_is_shown_with_the_values_that_decided_it() -> None:
    """The parts of its expression name the variable."""
    variables = [
        {"name": "images", "expression": "object.spec.containers.map(c, c.image)"},
        {"name": "trusted", "expression": "variables.images.all(i, i.contains('/'))"},
    ]
    [explained] = evidence(POD, "variables.trusted", variables=variables)
    expected = (
        Reason("variables.trusted", "false", "variables.trusted"),
        Reason("i", '"envoy"', "spec.containers[1].image", "trusted"),
    )
    assert expected == explained.reasons


def test_params_are_named() -> None:
    """A path into a param begins with `params`."""
    limits = thing(CONFIG_MAPS, "limits", "default", data={"name": "db"})
    bound = {"paramRef": {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}}
    manifest = policy(
        "p", "object.metadata.name == params.data.name", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}
    )
    recorded = scanned(FakeCluster([namespace("default"), POD, limits, manifest, binding("b", "p", **bound)]))
    [reasons] = [finding.evidence.reasons for finding in recorded.findings]
    assert [('"web"', "metadata.name"), ('"db"', "params.data.name")] == [
        (reason.value, reason.path) for reason in reasons
    ]


def test_long_values_are_cut() -> None:
    """The evidence has the beginning and the length of a long value."""
    [(_, value, _)] = reasons_of(thing(CONFIG_MAPS, "c", "default", data={"a": "x" * 5000}), "object.data.a == ''")
    assert f'"{"x" * 239}… [5,000 characters]' == value


def test_many_reasons_are_cut() -> None:
    """The evidence has the number of the reasons that it leaves out."""
    text = " || ".join(f"object.data.k{at} == 'x'" for at in range(15))
    [explained] = evidence(thing(CONFIG_MAPS, "c", "default", data={f"k{at}": "y" for at in range(15)}), text)
    assert (MOST, 15 - MOST) == (len(explained.reasons), explained.left_out)


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
def test_values_are_written_as_in_cel(value: object, expected: str) -> None:
    """Values of every type are written in CEL's notation."""
    subject = thing(CONFIG_MAPS, "c", "default", data={"a": value})
    assert [("object.data.a", expected, "data.a")] == reasons_of(subject, "dyn(object.data.a) == 'other'")


def encoded(text: str) -> str:
    """The text in base64, as a Secret has it."""
    return base64.b64encode(text.encode()).decode()


def a_secret(text: str) -> Document:
    """A Secret with a password, which its annotations repeat."""
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


@pytest.mark.parametrize(
    ("expression", "expected"), [(expression, reasons) for expression, reasons in READING if reasons]
)
def test_the_data_of_a_secret_is_withheld(expression: str, expected: list[tuple[str, str, str]]) -> None:
    """Every way to read the data is recognised; the path has only words of the policy."""
    assert expected == [
        reason for reason in reasons_of(a_secret("hunter2"), expression, variables=VARIABLES) if reason[1] != "true"
    ]


@given(
    st.sampled_from([expression for expression, _ in READING]),
    st.text("ABCxyz019_-", min_size=8, max_size=20),
)
@settings(max_examples=150, deadline=None)
@example(READING[0][0], "hunter2-very-secret")
def test_no_evidence_has_a_part_of_a_secret(expression: str, text: str) -> None:
    """The evidence contains neither the value nor its encoded form, nor a part of five characters."""
    assume(not any(text[at : at + 4] in expression + LAST_APPLIED + WITHHELD for at in range(len(text) - 3)))
    text_of_evidence = str(evidence(a_secret(text), expression, variables=VARIABLES)).lower()
    shown = [text[at : at + 5].lower() for at in range(len(text) - 4)] + [encoded(text)[:8].lower(), text[:5].lower()]
    assert [] == [part for part in shown if part in text_of_evidence]


def test_a_key_that_the_policy_does_not_name_is_no_part_of_a_path() -> None:
    """Such a key may have been computed from a secret."""
    reasons = reasons_of(a_secret("hunter2"), "object.data.all(k, v, v == '')")
    assert [("v", WITHHELD, "data")] == reasons


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
def test_fields_of_a_secret_without_its_data_are_shown(expression: str, expected: list[tuple[str, str, str]]) -> None:
    """The existence and the number of values, the labels and the type are shown."""
    assert expected == reasons_of(a_secret("hunter2"), expression)


def test_a_param_can_be_a_secret() -> None:
    """The data of a Secret that is a param is withheld like that of the object."""
    manifest = policy(
        "p", "object.metadata.name == params.data.password", paramKind={"apiVersion": "v1", "kind": "Secret"}
    )
    bound = {"paramRef": {"name": "creds", "namespace": "default", "parameterNotFoundAction": "Deny"}}
    recorded = scanned(
        FakeCluster([namespace("default"), POD, a_secret("hunter2"), manifest, binding("b", "p", **bound)])
    )
    [reasons] = [finding.evidence.reasons for finding in recorded.findings]
    assert ['"web"', WITHHELD] == [reason.value for reason in reasons]


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
def test_secrets_in_other_objects_are_hidden(expression: str, expected: list[tuple[str, str, str]] | None) -> None:
    """Environment variables, fields named like passwords and kubectl's copy are masked in place and withheld elsewhere."""
    reasons = reasons_of(POD, expression)
    assert (expected or reasons) == reasons
    assert not any(secret in str(reasons) for secret in ("opensesame", "hunter2"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://app:hunter2@db:5432/x", f"postgres://app:{MASK}@db:5432/x"),
        ("postgres://app:p@ss/w0rd@db/x", f"postgres://app:{MASK}@db/x"),
        ("postgres://app:hun/ter2@db/x", f"postgres://app:{MASK}@db/x"),
        ("postgres://app:4711@2/2@db/x", f"postgres://app:{MASK}@db/x"),
        ("postgres://app@east:hunter2@db/x", f"postgres://app@east:{MASK}@db/x"),
        ('redis://:hun"t/er2@db', f"redis://:{MASK}@db"),
        ("amqp://a:hun/ter@mq amqp://b:hun/ter@mq", f"amqp://a:{MASK}@mq amqp://b:{MASK}@mq"),
        ('{"db":"amqp://a:hun/ter@mq","to":"a@b"}', f'{{"db":"amqp://a:{MASK}@mq","to":"a@b"}}'),
        ("postgres://a:hun/ter@db/x?password=p@ss", f"postgres://a:{MASK}@db/x?password={MASK}"),
        ("https://host/a@b", "https://host/a@b"),
        ("http://a:80/x@y", "http://a:80/x@y"),
        ("http://a:80?x=b@y", "http://a:80?x=b@y"),
        ("http://[::1]:80/x@y", "http://[::1]:80/x@y"),
        ("postgresql://bob@db:5432/x@y", "postgresql://bob@db:5432/x@y"),
        ("k8s://https://host:6443/x@y", "k8s://https://host:6443/x@y"),
        ("git+ssh://git@github.com:org/tool@v1", "git+ssh://git@github.com:org/tool@v1"),
        ("oci://registry:5000/web@sha256:1f", "oci://registry:5000/web@sha256:1f"),
        ("token: hunter2, mode: dev", f"token: {MASK}, mode: dev"),
        ('{"apiKey": "hunter2"}', f'{{"apiKey": "{MASK}"}}'),
        ("-----BEGIN RSA PRIVATE KEY-----\nhunter2", f"-----BEGIN RSA PRIVATE KEY-----{MASK}"),
        ("eyJhbGciOiJ9.eyJzdWIiOiIx.c2lnbmF0dXJl", MASK),
        ("registry/secret-store:1.2", "registry/secret-store:1.2"),
    ],
)
def test_passwords_in_texts_are_masked(text: str, expected: str) -> None:
    """A text is masked where it names a password, a token or a key, and nowhere else."""
    [(_, value, _)] = reasons_of(thing(CONFIG_MAPS, "c", "default", data={"a": text}), "object.data.a == ''")
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
def test_names_and_keys_reveal_no_secret(expression: str, expected: list[tuple[str, str, str]]) -> None:
    """A key computed from a secret is no part of a path, and a value called a token is withheld."""
    variables = [{"name": "apiToken", "expression": "'opensesame'.upperAscii() + object.metadata.name"}]
    manifest = policy("p", expression, variables=variables)
    place = namespace("default")
    place["metadata"]["annotations"] = {"db-password": "hunter2"}
    recorded = scanned(FakeCluster([place, POD, manifest, binding()]))
    reasons = [reason for finding in recorded.findings for reason in finding.evidence.reasons]
    assert expected == [(reason.expression, reason.value, reason.path) for reason in reasons][:1]
    assert not any(secret in repr(reasons).lower() for secret in ("opensesame", "hunter2"))


@pytest.mark.parametrize("expression", ["variables.letters", "object.data.password.split('')"])
def test_the_length_of_a_secret_is_hidden(expression: str) -> None:
    """The evidence states neither the number of its characters nor which of them decided."""
    variables = [{"name": "letters", "expression": "object.data.password.split('')"}]
    texts = [
        str(evidence(a_secret(text), f"{expression}.exists(l, l == '!')", variables=variables))
        for text in ("hunter2", "hunter2-hunter2-hunter2")
    ]
    assert texts[0] == texts[1]


def test_only_name_and_groups_of_the_requester_are_shown() -> None:
    """A report states the name and the groups; other info of an authenticator is withheld."""
    [(_, value, _)] = reasons_of(POD, "dyn(request.userInfo) == {'username': 'jane'}")
    assert WITHHELD == value


def test_the_path_of_a_pod_template_begins_at_its_object() -> None:
    """The evidence of a Deployment names the place of the template in the Deployment."""
    spec = {"template": {"spec": {"containers": [{"name": "app", "image": "nginx"}]}}}
    subject = thing(DEPLOYMENTS, "web", "default", spec=spec)
    expected = [("c.image", '"nginx"', "spec.template.spec.containers[0].image")]
    assert expected == reasons_of(subject, "object.spec.template.spec.containers.all(c, c.image == 'x')")


def test_findings_with_the_same_reasons_share_their_evidence() -> None:
    """Two checks of one object that fail for the same value have one evidence, which the store writes once."""
    first, second = evidence(POD, "'a' in object.metadata.labels", "'b' in object.metadata.labels")
    assert first is second


def test_findings_about_different_objects_share_no_evidence() -> None:
    """The labels of each object are in its own evidence."""
    pods = [thing(PODS, name, "default", metadata={"labels": {"app": name}}) for name in ("web", "api")]
    first, second = evidence(pods[0], "'a' in object.metadata.labels", more=(pods[1],))
    assert {'{"app": "web"}', '{"app": "api"}'} == {first.reasons[0].value, second.reasons[0].value}


def test_the_same_scan_gives_the_same_evidence() -> None:
    """The order of reasons does not depend on chance."""
    expression = "object.metadata.labels.all(k, v, v == 'x') && object.spec.containers.exists(c, c.name == 'x')"
    assert evidence(POD, expression) == evidence(POD, expression)


def test_an_error_about_a_list_shows_the_list_of_its_own_object() -> None:
    """Lists with equal values in the fields that the check reads may differ in all others."""
    context = {"runAsNonRoot": "yes"}
    pods = [
        thing(PODS, name, "default", spec={"containers": [{"name": name, "securityContext": context}]})
        for name in ("web", "api")
    ]
    found = evidence(
        pods[0], "object.spec.containers.all(c, c.?securityContext.?runAsNonRoot.orValue(false))", more=(pods[1],)
    )
    expected = [f'[{{"name": "{name}", "securityContext": {{"runAsNonRoot": "yes"}}}}]' for name in ("api", "web")]
    assert expected == sorted(explained.reasons[0].value for explained in found)


def test_each_of_many_different_objects_has_its_own_value() -> None:
    """Evidence is looked up by values only as long as other objects repeat them: what it shows stays that of the object."""
    maps = [thing(CONFIG_MAPS, f"c{at:03}", "default", data={f"key{at}": "x"}) for at in range(200)]
    found = evidence(maps[0], "'wanted' in object.data", more=tuple(maps[1:]))
    assert [f'{{"key{at}": "x"}}' for at in range(200)] == [explained.reasons[0].value for explained in found]


def test_policies_that_fail_for_one_value_share_evidence_and_keep_their_own_words() -> None:
    """The same part of an object gives the same reason for every policy that fails, and no other object has it."""
    maps = [thing(CONFIG_MAPS, name, "default", data={name: "x"}) for name in ("a", "b")]
    found = evidence(maps[0], "'y' in object.data", "'z' in object.data", "size(object.data) > 1", more=(maps[1],))
    shown = sorted((reason.expression, reason.value) for explained in found for reason in explained.reasons)
    values = [('{"a": "x"}'), ('{"b": "x"}')]
    assert [("object.data", value) for value in values for _ in range(2)] + [("size(object.data)", "1")] * 2 == shown


SHAPES = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(st.sampled_from("ab#*"), st.sampled_from(["x", "y"]), max_size=2),
        "env": st.lists(st.sampled_from(["opensesame", "registry.example.com"]), max_size=1),
        "images": st.lists(st.sampled_from(["registry.example.com/a", "b"]), max_size=3),
        "priority": st.sampled_from([None, 1, 1.0, "1", [1], {}]),
    }
)


def pod_of(name: str, shape: dict[str, Any]) -> Document:
    """A Pod of some shape."""
    env = [{"name": "A", "value": value} for value in shape["env"]]
    containers = [{"name": f"c{at}", "image": image, "env": env} for at, image in enumerate(shape["images"])]
    spec = {"containers": containers, "priority": shape["priority"]}
    return thing(PODS, name, "default", metadata={"labels": shape["labels"], "uid": name}, spec=spec)


@given(st.lists(SHAPES, min_size=2, max_size=6))
@settings(max_examples=30, deadline=None)
def test_cached_evidence_equals_the_evidence_of_the_object_alone(shapes: list[dict[str, Any]]) -> None:
    """Objects that were evaluated earlier do not change the evidence of the next object."""
    expressions = [
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
    manifest = policy("p", *expressions, matchConstraints=EVERYTHING, variables=variables)
    pods = [pod_of(f"p{at}", shape) for at, shape in enumerate(shapes)]

    def findings(*subjects: Document) -> list[tuple[str, int, Evidence]]:
        recorded = scanned(FakeCluster([namespace("default"), *subjects, manifest, binding()]))
        return sorted(((finding.name, finding.check.index, finding.evidence) for finding in recorded.findings), key=str)

    alone = sorted((item for subject in pods for item in findings(subject)), key=str)
    assert [str(item) for item in alone] == [str(item) for item in findings(*pods)]

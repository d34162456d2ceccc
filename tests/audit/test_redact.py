"""No finding contains a secret."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from scanner.admission.context import EvaluationContext
from scanner.audit.fast_path import FastPath
from scanner.audit.page import PageEvaluator
from scanner.audit.redact import WITHHELD, WITHHELD_ERROR, mask_text, remove_data
from scanner.audit.sensitive_fields import MASK, mask_named_secrets
from scanner.model.resource import Kind, Page, resource_of
from scanner.policies.plan import KindPlan, find_equivalents, plan
from scanner.policies.validating.language import bind, read_binding, read_policy
from scanner.scan.param_table import ParamTable
from tests.documents import (
    CONFIG_MAPS,
    KINDS,
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

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ON_SECRETS = {"resourceRules": [rule("secrets")]}
READING_EXPRESSIONS = [
    "object.data.password",
    "string(object.data.password)",
    "object.data['pass' + 'word']",
    "object['da' + 'ta'].password",
    "object.?data.?password.orValue('')",
    "oldObject == null ? object.data.password.lowerAscii() : ''",
    "object.data.map(k, object.data[k]).join(',')",
    "[object].map(o, o.data.password).join(',')",
    "variables.all.password",
    "variables.again.password",
    "object.stringData.password",
    "object.metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']",
    "object.metadata.annotations.map(k, object.metadata.annotations[k]).join(',')",
    "object.data.password.substring(1)",
]
VARIABLES = [
    {"name": "all", "expression": "object.data"},
    {"name": "again", "expression": "variables.all"},
]


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
        metadata={"annotations": annotations},
        data={"password": encoded(text)},
        stringData={"password": text},
    )


def messages(subject: Document, **spec: Any) -> list[str]:
    """The messages of the findings about an object of the namespace `default`."""
    matched = {"resourceRules": [rule("secrets", "pods", "configmaps")]}
    manifest = policy("p", matchConstraints=matched, variables=VARIABLES, **spec)
    cluster = FakeCluster([namespace("default"), subject, manifest, binding()])
    return [finding.outcome.message for finding in scanned(cluster).findings]


@pytest.mark.parametrize("expression", READING_EXPRESSIONS)
def test_a_message_that_reads_the_data_of_a_secret_is_withheld(expression: str) -> None:
    """The whole message is withheld, because parts of a value could not be recognised."""
    validations = [{"expression": "false", "messageExpression": f"'it is ' + ({expression})"}]
    assert [WITHHELD] == messages(a_secret("hunter2"), validations=validations)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("string(object.metadata.name)", "creds"),
        ("string(object.metadata.annotations.note)", "harmless"),
        ("string(size(object.kind))", "6"),
        ("request.namespace", "default"),
        ("string(object.type)", "as written"),
    ],
)
def test_a_message_that_reads_other_fields_is_kept(expression: str, message: str) -> None:
    """The name, labels and type of a Secret and the policy's own words are no secrets."""
    validations = [{"expression": "false", "messageExpression": expression, "message": "as written"}]
    assert [message] == messages(a_secret("hunter2"), validations=validations)


def test_the_policys_own_words_are_kept() -> None:
    """A messageExpression that fails falls back to the message of the policy, which contains no secret."""
    validations = [{"expression": "false", "messageExpression": "object.data.missing", "message": "say data.missing"}]
    assert ["say data.missing"] == messages(a_secret("hunter2"), validations=validations)


@pytest.mark.parametrize(
    ("expression", "cause"),
    [
        ("int(object.data.password) > 3", WITHHELD_ERROR),
        ("object.metadata.labels[object.data.password] == ''", "no such key: labels"),
        ("object.data[object.data.password] == ''", WITHHELD_ERROR),
        ("object.data.missing == ''", "no such key: missing"),
        ("object.data.password > dyn(3)", "no such overload"),
        ("variables.all.absent == ''", "no such key: absent"),
    ],
)
def test_an_error_of_an_expression_that_reads_the_data_is_withheld(expression: str, cause: str) -> None:
    """Errors quote values, such as a number that cannot be parsed; errors with words of the policy alone are kept."""
    expected = f"expression '{expression}' resulted in error: {cause}"
    assert [expected] == messages(a_secret("hunter2"), validations=[{"expression": expression}])


def test_an_error_of_match_conditions_is_withheld() -> None:
    """The error concerns the whole policy, so no part of the text is kept."""
    conditions = [{"name": "c", "expression": "int(object.data.password) > 3"}]
    texts = messages(a_secret("hunter2"), matchConditions=conditions, validations=[{"expression": "true"}])
    assert [WITHHELD_ERROR] == texts


def test_an_error_of_an_audit_annotation_is_withheld() -> None:
    """The error is withheld, and the value of an audit annotation is not stored."""
    annotations = [{"key": "k", "valueExpression": "string(int(object.data.password))"}]
    texts = messages(a_secret("hunter2"), auditAnnotations=annotations)
    assert [f"expression 'string(int(object.data.password))' resulted in error: {WITHHELD_ERROR}"] == texts


def test_a_param_can_be_a_secret() -> None:
    """The data of a Secret that is a param is withheld like that of the object."""
    manifest = policy(
        "p",
        paramKind={"apiVersion": "v1", "kind": "Secret"},
        validations=[{"expression": "false", "messageExpression": "'it is ' + params.data.password"}],
    )
    reference = {"name": "creds", "namespace": "default", "parameterNotFoundAction": "Deny"}
    documents = [namespace("default"), thing(PODS, "web", "default"), a_secret("hunter2"), manifest]
    recorded = scanned(FakeCluster([*documents, binding("b", "p", paramRef=reference)]))
    assert [WITHHELD] == [finding.outcome.message for finding in recorded.findings]


ENV = {"env": [{"name": "TOKEN", "value": "opensesame"}, {"name": "MODE", "value": "dev"}]}


@pytest.mark.parametrize(
    "body",
    [
        {"spec": {"containers": [ENV]}},
        {"spec": {"initContainers": [ENV]}},
        {"spec": {"ephemeralContainers": [ENV]}},
        {"spec": {"template": {"spec": {"containers": [ENV]}}}},
        {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [ENV]}}}}}},
        {"template": {"spec": {"containers": [ENV]}}},
    ],
)
def test_values_of_environment_variables_are_masked(body: Document) -> None:
    """Every place of a pod template is searched; values too short to be secrets stay readable."""
    resource = resource_of(PODS, thing(PODS, "web", "default", **body))
    assert f"TOKEN={MASK} MODE=dev" == mask_text("TOKEN=opensesame MODE=dev", resource)


def test_values_of_environment_variables_are_masked_in_findings() -> None:
    """Messages and errors are masked."""
    subject = thing(PODS, "web", "default", spec={"containers": [{"name": "a", **ENV}]})
    value = "object.spec.containers[0].env[0].value"
    texts = messages(
        subject,
        validations=[
            {"expression": "false", "messageExpression": f"'got ' + {value}"},
            {"expression": f"int({value}) > 0"},
        ],
    )
    assert f"got {MASK}" == texts[0]
    assert "opensesame" not in texts[1]


def test_the_data_of_a_config_map_is_not_masked() -> None:
    """A message may quote the data of a ConfigMap."""
    subject = thing(CONFIG_MAPS, "settings", "default", data={"mode": "developer"})
    assert ["developer"] == messages(
        subject, validations=[{"expression": "false", "messageExpression": "string(object.data.mode)"}]
    )


@pytest.mark.parametrize(
    ("values", "text", "expected"),
    [
        (["abcdef", "defghi"], "abcdefghi", MASK),
        (["abc", "abcdef"], "-abcdef-", f"-{MASK}-"),
        (["aba"], "ababa", MASK),
        (["red"], "red and redacted", f"{MASK} and {MASK}acted"),
        (["ab"], "ab is too short", "ab is too short"),
    ],
)
def test_overlapping_values_leave_no_rest(values: list[str], text: str, expected: str) -> None:
    """The longest stretch that belongs to several values becomes one mask."""
    secret = resource_of(SECRETS, thing(SECRETS, "s", "default", stringData=dict(zip("xyz", values, strict=False))))
    assert expected == mask_text(text, secret)


@given(
    password=st.text(min_size=3, max_size=40),
    expression=st.sampled_from(READING_EXPRESSIONS),
    field=st.sampled_from(["messageExpression", "expression"]),
)
@example(password='"quoted"', expression="object.data.password", field="expression")
def test_no_finding_contains_the_data_of_a_secret(password: str, expression: str, field: str) -> None:
    """Neither a message nor an error contains the password, plain or encoded."""
    validation = {"expression": "false", "messageExpression": f"'' + ({expression})"}
    if field == "expression":
        validation = {"expression": f"int(dyn({expression})) == ({expression}).size() + {2**62}"}
    texts = " ".join(messages(a_secret(password), validations=[validation]))
    policy_words = f"{WITHHELD} {WITHHELD_ERROR} no such key: {validation} failed resulted in error"
    assume(password not in policy_words)
    assert texts
    assert password not in texts
    assert encoded(password) not in texts


def test_only_core_secrets_are_secrets() -> None:
    """A kind of another group that is called Secret is no Secret: only its data are hidden."""
    other = Kind("example.com", "v1", "Secret", "secrets", namespaced=True)
    resource = resource_of(other, thing(other, "s", "default", spec={"a": "opensesame"}))
    assert "opensesame" == mask_text("opensesame", resource)


@pytest.mark.parametrize("expression", [f"({expression}) == 'x'" for expression in READING_EXPRESSIONS])
def test_policies_that_read_the_data_of_secrets_receive_it(expression: str) -> None:
    """The fast path recognises every way to read the data."""
    assert not FastPath(*planned(expression)).drops_secret_data


@pytest.mark.parametrize(
    "expression",
    [
        "object.type == 'Opaque'",
        "object.metadata.labels['a'] == 'b'",
        "object.metadata.annotations['note'] == 'x'",
        "has(object.immutable) && object.immutable",
        "request.name != 'x'",
        "namespaceObject.metadata.name == 'default'",
    ],
)
def test_policies_that_do_not_read_the_data_do_not_receive_it(expression: str) -> None:
    """Their results are the same with and without the data."""
    fast_path = FastPath(*planned(expression))
    assert fast_path.drops_secret_data
    given, withheld = (page_result(expression, withholds=withholds) for withholds in (False, True))
    assert given == withheld


def test_data_that_no_policy_receives_is_withheld() -> None:
    """A copy of the value in an annotation is recognised, although no policy received the value itself."""
    secret = a_secret("hunter2")
    secret["metadata"]["annotations"]["note"] = "it is hunter2"
    validations = [{"expression": "false", "messageExpression": "string(object.metadata.annotations['note'])"}]
    manifest = policy("p", matchConstraints=ON_SECRETS, validations=validations)
    cluster = FakeCluster([namespace("default"), secret, manifest, binding()])
    assert [WITHHELD] == [finding.outcome.message for finding in scanned(cluster).findings]


def test_a_secret_without_its_data_has_all_other_fields() -> None:
    """The body lacks `data` and `stringData`, which `withheld` keeps."""
    resource = remove_data(resource_of(SECRETS, a_secret("hunter2")))
    assert {"apiVersion", "kind", "metadata"} == set(resource.body)
    assert {"data", "stringData"} == set(resource.withheld)


def planned(expression: str) -> tuple[EvaluationContext, KindPlan]:
    """The context and the plan of the list of Secrets, for a policy with one validation."""
    manifest = policy(
        "p", matchConstraints=ON_SECRETS, variables=VARIABLES[:0], validations=[{"expression": expression}]
    )
    if "variables" in expression:
        manifest["spec"]["variables"] = VARIABLES
    (chosen,) = plan(KINDS, bind([read_policy(manifest)], [read_binding(binding())]))
    spaces = {"default": namespace("default")}
    return EvaluationContext(ParamTable(KINDS), spaces, equivalents=find_equivalents(KINDS)), chosen


def page_result(expression: str, *, withholds: bool) -> Any:
    """The result of a page with one Secret."""
    context, kind_plan = planned(expression)
    fast_path = FastPath(context, kind_plan)
    fast_path.drops_secret_data = withholds
    page = Page(SECRETS, 1, json.dumps({"items": [a_secret("hunter2")]}).encode())
    return PageEvaluator(context, fast_paths={SECRETS: fast_path}).evaluate(page, kind_plan)


@pytest.mark.parametrize(
    "part",
    [
        "eyJ-",
        "password:",
        "token = ",
        "://a:b",
        "://:",
        "-----BEGIN ",
        "-----BEGIN A PRIVATE KEY",
        "key:\u00a0\u00a0",
        "a@b://",
    ],
)
def test_a_hostile_text_is_read_once(part: str) -> None:
    """Four million characters with a million beginnings of secrets: a pattern that begins anew at each would take days."""
    text = part * (4_000_000 // len(part))
    assert mask_named_secrets(text).startswith(part[:3])


def test_a_password_after_any_space_is_masked() -> None:
    """A no-break space is one."""
    assert f"password:\u00a0{MASK}" == mask_named_secrets("password:\u00a0abc")


def test_a_text_with_half_a_character_is_redacted() -> None:
    """A lone surrogate is no text in UTF-8."""
    assert f"password={MASK} ?" == mask_named_secrets("password=abc \ud800")

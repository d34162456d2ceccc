"""One policy, one request, at most one param: variables, match conditions, checks, failure policy → outcomes.

Source of truth: `validating.Validator.Validate`, `matchconditions.Matcher` and `cel.CompositedCompiler` of
kube-apiserver 1.36. An invocation ends in exactly one judgement per check: its validations and audit annotations, or
one for its match conditions when those erred, or one for its configuration, or for its budget when that ran out.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

from scanner import cel
from scanner.admission.cost_budget import (
    CONDITIONS,
    EXHAUSTED,
    RUNTIME,
    Fault,
    Outlay,
    Purse,
    Share,
    Strain,
    Variables,
    run,
    run_all,
)
from scanner.model.json import JsonObject, as_object, dig
from scanner.model.outcome import (
    Check,
    CheckKind,
    Errored,
    Judgement,
    Outcome,
    Passed,
    Skipped,
    SkipReason,
    Violated,
)
from scanner.model.policy import MatchResources, Mutation, NamedExpression, Operation, Policy, Validation
from scanner.model.release import NEWEST, Minor
from scanner.model.resource import Kind, Resource, UserInfo

_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
_LONGEST_MESSAGE = 5120
_LONGEST_ANNOTATION = 10240
# What Go's strings.TrimSpace strips; Python's str.strip() takes U+001C to U+001F away as well.
_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_NAMESPACE_METADATA = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression and what became of it: a program, or the text of the reason why it does not compile.

    `paths` are the access paths that it reads, directly or through the policy's variables; those of a variable, directly.
    """

    text: str
    program: cel.Program | None
    fault: str = ""
    paths: frozenset[tuple[str, ...]] = frozenset()

    def reads(self, root: str) -> bool:
        """Whether it reads a variable of the environment, such as `authorizer`."""
        return any(path[0] == root for path in self.paths)


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A policy with its expressions compiled, in the policy's order. Never part of a noun, never pickled.

    `excess` says why it was not compiled at all. `watch` sees every activation before an expression does. `written` are all variables as they stand there: of one name, only
    the last is ever evaluated.
    """

    policy: Policy
    variables: Mapping[str, Expression]
    conditions: tuple[tuple[NamedExpression, Expression], ...]
    validations: tuple[tuple[Validation, Expression, Expression | None], ...]
    annotations: tuple[Expression, ...]
    mutations: tuple[Expression, ...] = ()
    checks: tuple[Check, ...] = field(default=())
    outlay: Outlay | None = None
    watch: Callable[[Mapping[str, object]], None] | None = None
    written: tuple[Expression, ...] = ()
    excess: str = ""

    def expressions(self) -> Iterator[tuple[str, Expression]]:
        """Every expression with its path in the manifest, in the order in which they are compiled."""
        for index, expression in enumerate(self.written or self.variables.values()):
            yield f"spec.variables[{index}].expression", expression
        for index, (_, expression) in enumerate(self.conditions):
            yield f"spec.matchConditions[{index}].expression", expression
        for index, (_, expression, message) in enumerate(self.validations):
            yield f"spec.validations[{index}].expression", expression
            if message:
                yield f"spec.validations[{index}].messageExpression", message
        for index, expression in enumerate(self.annotations):
            yield f"spec.auditAnnotations[{index}].valueExpression", expression
        for index, expression in enumerate(self.mutations):
            body = "jsonPatch" if self.policy.mutations[index].patch_type == "JSONPatch" else "applyConfiguration"
            yield f"spec.mutations[{index}].{body}.expression", expression

    def activation(self, base: Mapping[str, object], *, metered: bool = False) -> dict[str, object]:
        """A fresh activation: variables are evaluated anew in each."""
        activation = {**base, "variables": Variables(self.variables, base, metered=metered)}
        if self.watch is not None:
            self.watch(activation)
        return activation

    def has_to_count(self, inputs: Mapping[str, object]) -> bool:
        """Whether its expressions could come to a limit of cost, as far as can be told without counting."""
        return self.outlay is None or not self.outlay.is_within_limits(inputs)

    def reads(self, check: Check) -> frozenset[tuple[str, ...]]:
        """The access paths of what decides a check, those of the variables it uses included."""
        return frozenset().union(*(expression.paths for expression in self.deciding(check)))

    def deciding(self, check: Check) -> tuple[Expression, ...]:
        """The expressions that decide a check."""
        match check.kind:
            case CheckKind.VALIDATION:
                return (self.validations[check.index][1],)
            case CheckKind.AUDIT_ANNOTATION:
                return (self.annotations[check.index],)
            case CheckKind.MUTATION:
                return (self.mutations[check.index],)
            case CheckKind.CONDITIONS:
                return tuple(expression for _, expression in self.conditions)
            case CheckKind.CONFIGURATION:
                return ()
            case _ as never:
                assert_never(never)

    def message_reads(self, index: int) -> frozenset[tuple[str, ...]]:
        """The access paths of a validation's messageExpression, those of the variables it uses included."""
        message = self.validations[index][2]
        return message.paths if message else frozenset()


@dataclass(frozen=True, slots=True)
class Request:
    """A simulated admission request on a stored object. `matched` is the kind the object is evaluated in.

    `decider` answers what expressions ask the authorizer; without one they are not auditable. `current` is the object as
    mutations have left it so far, None before any. `narrowing` is how the binding narrows what the policy matches. `strain`
    feels how near the evaluation comes to its limits.
    """

    operation: Operation
    original: Kind
    matched: Kind
    resource: Resource
    namespace: str
    namespace_object: JsonObject | None
    user: UserInfo
    decider: cel.Decider | None = None
    current: JsonObject | None = None
    strain: Strain | None = None
    narrowing: MatchResources | None = None


def compile_policy(policy: Policy, rules: Minor = NEWEST, *, new: bool = False) -> CompiledPolicy:
    """Compile every expression of a policy; what does not compile is kept as a fault, as a server keeps it.

    `rules` is the Kubernetes release that evaluates. A `new` policy is one that is being written: until the release after,
    it cannot use what this release adds.
    """
    try:
        with _without_collections():
            return _compiled(policy, rules, new=new)
    except cel.TooLarge as why:
        return too_large(policy, why)


@contextmanager
def _without_collections() -> Iterator[None]:
    """What is compiled stays: searching all of it for garbage, over and over, takes longer with each expression."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _compiled(policy: Policy, rules: Minor, *, new: bool) -> CompiledPolicy:
    allowance = Allowance()
    environment = cel.Environment(version=rules, compatible=(rules[0], rules[1] - 1) if new else None)
    environment = environment.extend(cel.PARAMS) if policy.param_kind else environment
    if new and not policy.mutations and not policy.variables:
        environment = environment.without("variables")
    variables: dict[str, Expression] = {}
    written: list[Expression] = []

    def compiled(text: str, environment: cel.Environment) -> Expression:
        return allowance.take(compile_expression(text, environment, variables))

    for variable in policy.variables:
        expression = allowance.take(compile_variable(variable.expression, environment.extend(cel.AUTHORIZATION)))
        variables[variable.name] = expression
        written.append(expression)
        result = expression.program.result_type if expression.program else cel.DYN
        environment = environment.with_variable(variable.name, result)
    authorized = environment.extend(cel.AUTHORIZATION)
    validations = tuple(
        (
            validation,
            compiled(validation.expression, authorized.returning(cel.BOOL)),
            compiled(validation.message_expression, environment.returning(cel.STRING))
            if validation.message_expression.strip()
            else None,
        )
        for validation in policy.validations
    )
    found = CompiledPolicy(
        policy=policy,
        variables=variables,
        conditions=tuple(
            (condition, compiled(condition.expression, authorized.returning(cel.BOOL)))
            for condition in policy.match_conditions
        ),
        validations=validations,
        annotations=tuple(
            compiled(annotation.value_expression, authorized.returning(cel.STRING, cel.NULL))
            for annotation in policy.audit_annotations
        ),
        mutations=tuple(
            compiled(mutation.expression, _for_mutation(mutation, authorized)) for mutation in policy.mutations
        ),
        checks=checks_of(policy),
        written=tuple(written),
    )
    return replace(found, outlay=_outlay(found))


class Allowance:
    """How much the expressions of one policy may still expand to: a policy that stalls no scan."""

    def __init__(self) -> None:
        self._left = cel.LARGEST

    def take(self, expression: Expression) -> Expression:
        """The expression, which must be within what is left. Raises TooLarge."""
        self._left -= expression.program.size if expression.program else 0
        if self._left < 0:
            raise cel.TooLarge(f"its expressions expand to more than {cel.LARGEST:,} nodes")
        return expression


def too_large(policy: Policy, why: cel.TooLarge) -> CompiledPolicy:
    """A policy that is not compiled: every check of it is skipped, on every object that it matches."""
    return CompiledPolicy(
        policy=policy,
        variables={},
        conditions=(),
        validations=tuple((it, Expression(it.expression, None), None) for it in policy.validations),
        annotations=tuple(Expression(it.value_expression, None) for it in policy.audit_annotations),
        mutations=tuple(Expression(it.expression, None) for it in policy.mutations),
        checks=checks_of(policy),
        excess=f"compiling the policy takes more than Assay spends on one: {why}",
    )


def left_out(compiled: CompiledPolicy) -> tuple[Judgement, ...]:
    """What is said of a policy that was not compiled."""
    return tuple(Judgement(check, Skipped(SkipReason.NOT_AUDITABLE, compiled.excess)) for check in compiled.checks)


def _outlay(compiled: CompiledPolicy) -> Outlay:
    judged = [one for _, expression, message in compiled.validations for one in (expression, message)]
    shares = (
        _share(CONDITIONS, [expression for _, expression in compiled.conditions]),
        _share(RUNTIME, judged),
        _share(RUNTIME, compiled.annotations),
        *(_share(RUNTIME, [expression]) for expression in compiled.mutations),
    )
    return Outlay(compiled.variables, shares)


def _share(budget: int, expressions: Sequence[Expression | None]) -> Share:
    return Share(budget, tuple(one.program for one in expressions if one is not None and one.program is not None))


def checks_of(policy: Policy) -> tuple[Check, ...]:
    """Every check of a policy, in the order of its judgements."""
    validations = (
        Check(CheckKind.VALIDATION, index, validation.expression) for index, validation in enumerate(policy.validations)
    )
    annotations = (
        Check(CheckKind.AUDIT_ANNOTATION, index, annotation.value_expression)
        for index, annotation in enumerate(policy.audit_annotations)
    )
    mutations = (
        Check(CheckKind.MUTATION, index, mutation.expression) for index, mutation in enumerate(policy.mutations)
    )
    return (*validations, *annotations, *mutations)


def _for_mutation(mutation: Mutation, environment: cel.Environment) -> cel.Environment:
    result = cel.PATCH_LIST if mutation.patch_type == "JSONPatch" else cel.OBJECT
    return cel.for_patches(environment).returning(result)


def compile_expression(text: str, environment: cel.Environment, variables: Mapping[str, Expression]) -> Expression:
    """Compile one expression; a fault is kept. Its paths are its own and those of the variables that it reads."""
    compiled = compile_variable(text, environment)
    return compiled if compiled.program is None else replace(compiled, paths=_paths(compiled, variables))


def compile_variable(text: str, environment: cel.Environment) -> Expression:
    """Compile a variable: its paths are its own alone, so that a thousand variables in a chain do not repeat one another's."""
    try:
        program = cel.compile(text, environment)
    except cel.CompileError as error:
        return Expression(text, None, error.detail)
    return Expression(text, program, paths=program.reads)


def _paths(compiled: Expression, variables: Mapping[str, Expression]) -> frozenset[tuple[str, ...]]:
    found = set(compiled.paths)
    waiting, seen = [compiled], set[str]()
    while waiting:
        for name in _names(waiting.pop(), variables) - seen:
            seen.add(name)
            waiting.append(variables[name])
            found |= variables[name].paths
    return frozenset(found)


def _names(expression: Expression, variables: Mapping[str, Expression]) -> set[str]:
    """The variables that an expression reads by itself."""
    if ("variables",) in expression.paths:
        return set(variables)
    return {path[1] for path in expression.paths if path[0] == "variables" and path[1] in variables}


def evaluate(compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[Judgement, ...]:
    """Every check of a matched invocation, decided as the API server would decide it."""
    if compiled.excess:
        return left_out(compiled)
    if stopped := before_checks(compiled, request, param):
        return stopped
    base = {**_activation(compiled.policy, request, param), "namespaceObject": request.namespace_object}
    if compiled.has_to_count(base):
        return _evaluate_within_budget(compiled, request, base)
    filtered, messages = _visible(request, base)
    return uncounted(compiled, filtered, messages, base)


def uncounted(
    compiled: CompiledPolicy,
    seen: Mapping[str, object],
    seen_by_messages: Mapping[str, object],
    seen_by_annotations: Mapping[str, object],
) -> tuple[Judgement, ...]:
    """Every check, where no limit of cost is near, given what the expressions may name but the variables."""
    filtered = compiled.activation(seen)
    has_messages = any(message is not None for _, _, message in compiled.validations)
    messages = compiled.activation(seen_by_messages) if has_messages else {}
    outcomes = [_validate(compiled, entry, filtered, messages) for entry in compiled.validations]
    if compiled.annotations:
        full = compiled.activation(seen_by_annotations)
        outcomes += [_annotation(compiled, expression, run(expression, full)) for expression in compiled.annotations]
    return tuple(map(Judgement, compiled.checks, outcomes))


def _visible(request: Request, base: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """What validations may see, and what their messages may."""
    visible = {**base, "namespaceObject": filtered_namespace(request.namespace_object)}
    return {**visible, **_authorization(request)}, visible


def _evaluate_within_budget(
    compiled: CompiledPolicy, request: Request, base: Mapping[str, object]
) -> tuple[Judgement, ...]:
    """Count: validations and then all their messages out of one budget, annotations out of another."""
    filtered, visible = (compiled.activation(one, metered=True) for one in _visible(request, base))
    purse = Purse(RUNTIME, request.strain)
    asked = [expression for _, expression, _ in compiled.validations if _is_asked(expression, filtered)]
    values = run_all(asked, filtered, purse)
    if isinstance(values, Fault):
        return _exhausted(compiled)
    texts = run_all((message for _, _, message in compiled.validations), visible, purse)
    annotations = run_all(compiled.annotations, compiled.activation(base, metered=True), Purse(RUNTIME, request.strain))
    if isinstance(annotations, Fault):
        return _exhausted(compiled)
    found = iter(values)
    outcomes = [
        *(
            _counted(compiled, entry, next(found), texts if isinstance(texts, Fault) else texts[index])
            if _is_asked(entry[1], filtered)
            else _NOT_ASKED
            for index, entry in enumerate(compiled.validations)
        ),
        *map(partial(_annotation, compiled), compiled.annotations, annotations),
    ]
    return tuple(map(Judgement, compiled.checks, outcomes))


def _exhausted(compiled: CompiledPolicy) -> tuple[Judgement, ...]:
    """The one judgement of an invocation that has run out of its budget: it takes the place of all others."""
    return (Judgement(Check(CheckKind.CONFIGURATION), _errored(compiled.policy, EXHAUSTED)),)


def _counted(
    compiled: CompiledPolicy,
    entry: tuple[Validation, Expression, Expression | None],
    value: cel.Value | Fault,
    text: cel.Value | Fault,
) -> Outcome:
    """The outcome of a validation; when the messages have run out of budget, one that passes errs as well."""
    if not isinstance(value, Fault) and isinstance(text, Fault) and text.ends:
        return _errored(compiled.policy, f"failed messageExpression: {text.text}")
    return _validation(compiled, entry[0], value, lambda: text)


def before_checks(compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[Judgement, ...]:
    """What the match conditions decide before any check is asked; nothing when they hold."""
    if not compiled.conditions:
        return ()
    base = {**_activation(compiled.policy, request, param), **_authorization(request)}
    seen = {**base, "request": _request_of_conditions(request)}
    return unmet(compiled, seen, request.strain, counts=compiled.has_to_count(base))


def unmet(
    compiled: CompiledPolicy, seen: Mapping[str, object], strain: Strain | None = None, *, counts: bool = False
) -> tuple[Judgement, ...]:
    """What the match conditions decide, given what they may name but the variables; nothing when they hold."""
    verdict = _conditions(compiled, seen, strain, counts=counts)
    if isinstance(verdict, Skipped):
        return tuple(Judgement(check, verdict) for check in compiled.checks)
    return () if verdict is None else (Judgement(Check(CheckKind.CONDITIONS), verdict),)


def inputs(compiled: CompiledPolicy, request: Request, param: Resource | None) -> dict[str, object]:
    """A fresh activation with all that a mutation may name: the whole namespace, the authorizer, variables of its own."""
    base = _activation(compiled.policy, request, param)
    full = {**base, "namespaceObject": request.namespace_object, **_authorization(request)}
    return compiled.activation(full, metered=compiled.has_to_count(full))


def inputs_of(compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check) -> dict[str, object]:
    """What the expressions of a check see, in a fresh activation: to evaluate them once more, without counting."""
    base = _activation(compiled.policy, request, param)
    whole = {**base, "namespaceObject": request.namespace_object}
    match check.kind:
        case CheckKind.CONDITIONS:
            return compiled.activation({**base, **_authorization(request), "request": _request_of_conditions(request)})
        case CheckKind.VALIDATION:
            return compiled.activation(_visible(request, whole)[0])
        case CheckKind.AUDIT_ANNOTATION:
            return compiled.activation(whole)
        case CheckKind.MUTATION | CheckKind.CONFIGURATION:
            return compiled.activation({**whole, **_authorization(request)})
        case _ as never:
            assert_never(never)


def misconfigured(policy: Policy, text: str) -> Judgement:
    """The one judgement of an invocation whose configuration is at fault: it denies whatever the actions are."""
    denies = policy.failure_policy != "Ignore"
    if policy.failure_policy not in ("Fail", "Ignore"):
        text = f"unrecognized failure policy: '{policy.failure_policy}'"
    reason, code = ("Forbidden", 403) if policy.mutations else ("Invalid", 422)
    outcome = Errored(text, would_deny=denies, always=denies, reason=reason, code=code)
    return Judgement(Check(CheckKind.CONFIGURATION), outcome)


def _activation(policy: Policy, request: Request, param: Resource | None) -> dict[str, object]:
    body = request.resource.body
    activation: dict[str, object] = {
        "object": body if request.current is None else request.current,
        "oldObject": body if request.operation == "UPDATE" else None,
        "request": request_map(request),
        "namespaceObject": None,
    }
    if policy.param_kind is not None:
        activation["params"] = None if param is None else param.body
    return activation


def _authorization(request: Request) -> dict[str, object]:
    """The variables that ask the authorizer. Messages and audit annotations do not get them."""
    if request.decider is None:
        return {}
    user, asked = request.user, request.original
    authorizer = cel.Authorizer(request.decider, cel.Subject(user.username, user.groups, user.uid, user.extra))
    resource = authorizer.request_resource(
        group=asked.group, resource=asked.plural, namespace=request.namespace, name=request.resource.name
    )
    return {"authorizer": authorizer, "authorizer.requestResource": resource}


@dataclass(frozen=True, slots=True)
class RequestForm:
    """`request` as expressions see it, but for what differs from object to object."""

    before: Mapping[str, object]
    after: Mapping[str, object]

    def filled(self, name: str, namespace: str) -> dict[str, object]:
        """The map for one object: most empty strings are absent keys, as in the API server's conversion."""
        form = dict(self.before)
        if name:
            form["name"] = name
        if namespace:
            form["namespace"] = namespace
        form.update(self.after)
        return form


def request_form(operation: Operation, matched: Kind, original: Kind, user: UserInfo) -> RequestForm:
    """The form of all requests on objects of a kind.

    `uid`, `object` and `oldObject` are there, never filled and not declared: only `dyn(request)` reaches them.
    """
    extra = {key: list(values) for key, values in user.extra}
    user_info = {"username": user.username, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    options = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions"}[operation]
    before = {
        "uid": "",
        "kind": _group_version_kind(matched),
        "resource": _group_version_resource(matched),
        "requestKind": _group_version_kind(original),
        "requestResource": _group_version_resource(original),
    }
    after = {
        "operation": operation,
        "userInfo": {key: value for key, value in user_info.items() if value},
        "object": None,
        "oldObject": None,
        "dryRun": True,
        "options": {"kind": options, "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]},
    }
    return RequestForm(before, after)


def request_map(request: Request) -> dict[str, object]:
    """`request` as an expression sees it."""
    form = request_form(request.operation, request.matched, request.original, request.user)
    return form.filled(request.resource.name, request.namespace)


def _group_version_kind(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _group_version_resource(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def filtered_namespace(namespace: JsonObject | None) -> JsonObject | None:
    """The part of a Namespace that validations may see."""
    if namespace is None:
        return None
    metadata = as_object(dig(namespace, "metadata"))
    kept = {key: metadata[key] for key in _NAMESPACE_METADATA if key in metadata}
    return {"metadata": kept, **{key: namespace[key] for key in ("spec", "status") if key in namespace}}


def _conditions(
    compiled: CompiledPolicy, seen: Mapping[str, object], strain: Strain | None, *, counts: bool
) -> Skipped | Errored | None:
    """None when all conditions hold. One false condition beats every error, but not an exhausted budget."""
    activation = compiled.activation(seen, metered=counts)
    purse = Purse(CONDITIONS, strain) if counts else None
    faults: dict[str, None] = {}
    undecided, unmet = "", ""
    for condition, expression in compiled.conditions:
        if not _is_asked(expression, activation):
            undecided = undecided or f"match condition {condition.name} asks the authorizer"
            continue
        value = run(expression, activation, purse)
        if isinstance(value, Fault):
            if value.ends:
                return _errored(compiled.policy, value.text)
            faults[value.text] = None
        elif value is not True:
            unmet = unmet or condition.name
            if not counts:
                break
    if unmet:
        return Skipped(SkipReason.CONDITION_FALSE, unmet)
    if undecided:
        return Skipped(SkipReason.NOT_AUDITABLE, undecided)
    if not faults:
        return None
    text = next(iter(faults)) if len(faults) == 1 else f"[{', '.join(faults)}]"
    return _errored(compiled.policy, text)


def _request_of_conditions(request: Request) -> dict[str, object]:
    """`request` as match conditions see it: with the resource that was asked for."""
    return {**request_map(request), "resource": _group_version_resource(request.original)}


def _is_asked(expression: Expression, activation: Mapping[str, object]) -> bool:
    """Whether everything is there that an expression may ask."""
    return "authorizer" in activation or not expression.reads("authorizer")


def _errored(policy: Policy, text: str, *, always: bool = False) -> Errored:
    denies = policy.failure_policy != "Ignore"
    if policy.mutations:
        return Errored(text, would_deny=denies, always=denies, code=403)
    return Errored(text, would_deny=denies, always=always and denies)


_NOT_ASKED = Skipped(SkipReason.NOT_AUDITABLE, "the expression asks the authorizer")


def _validate(
    compiled: CompiledPolicy,
    entry: tuple[Validation, Expression, Expression | None],
    activation: Mapping[str, object],
    messages: Mapping[str, object],
) -> Outcome:
    validation, expression, message = entry
    if not _is_asked(expression, activation):
        return _NOT_ASKED
    value = run(expression, activation)
    return _validation(compiled, validation, value, lambda: None if message is None else run(message, messages))


def _validation(
    compiled: CompiledPolicy, validation: Validation, value: cel.Value | Fault, text: Callable[[], cel.Value | Fault]
) -> Outcome:
    if isinstance(value, Fault):
        return _errored(compiled.policy, value.text)
    if value is True:
        return Passed()
    reason = validation.reason or "Invalid"
    return Violated(_message(validation, text()), reason, _CODES.get(reason, 422))


def _message(validation: Validation, value: cel.Value | Fault) -> str:
    """What the violation says: the messageExpression, else the message, else the failed expression itself."""
    text = value.strip(_BLANKS) if isinstance(value, str) else ""
    if text and "\n" not in text and len(text.encode("utf-8", "surrogatepass")) <= _LONGEST_MESSAGE:
        return text
    return written_message(validation)


def written_message(validation: Validation) -> str:
    """What a violation says without its messageExpression: words of the policy, whatever the object is."""
    return validation.message.strip(_BLANKS) or f"failed expression: {validation.expression.strip(_BLANKS)}"


def _annotation(compiled: CompiledPolicy, expression: Expression, value: cel.Value | Fault) -> Outcome:
    if isinstance(value, Fault):
        return _errored(compiled.policy, value.text, always=True)
    if value is None:
        return Passed()
    if not isinstance(value, str):
        text = (
            f"valueExpression '{expression.text}' resulted in unsupported return type: {cel.type_name(value)}. "
            "Return type must be either string or null."
        )
        return Errored(text, would_deny=True, always=True)
    return Passed(annotation=_clipped(value.strip(_BLANKS)))


def _clipped(text: str) -> str:
    return text.encode("utf-8", "surrogatepass")[:_LONGEST_ANNOTATION].decode("utf-8", "ignore")

"""A policy with its expressions compiled, each in the environment that kube-apiserver gives it.

Source of truth: `cel.CompositedCompiler` of kube-apiserver 1.36.

Rules: `docs/semantics/cel-environment.md#policy-variables`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, assert_never

from scanner import cel
from scanner.admission.cost_budget import (
    CONDITIONS,
    RUNTIME,
    BudgetGroup,
    CostBounds,
    Variables,
)
from scanner.model.outcome import (
    Check,
    CheckKind,
)
from scanner.model.policy import Mutation, NamedExpression, Policy, Validation
from scanner.model.release import NEWEST, Minor

# The differences between the admission plugins of kube-apiserver that evaluate policies.
#
# Source of truth: `validating.dispatcher` and `mutating.dispatcher` of kube-apiserver 1.36, and the validation of new
# policies.


@dataclass(frozen=True, slots=True)
class Plugin:
    """The error handling of a plugin, and its declarations.

    `reason` is the reason in a denial because of a faulty configuration, `code` the HTTP status of every error. With
    `always_denies` an error that failurePolicy does not ignore denies with any action. With `declares_variables` a new
    policy without variables may still name `variables`.
    """

    reason: str
    code: int
    always_denies: bool
    declares_variables: bool


VALIDATING: Final = Plugin("Invalid", 422, always_denies=False, declares_variables=False)
MUTATING: Final = Plugin("Forbidden", 403, always_denies=True, declares_variables=True)


_NO_VARIABLES: Final = Variables({}, {})


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression and the result of its compilation: a program, or the text of the compilation error.

    `paths` are the access paths that it reads, directly or through the policy's variables; those of a variable, directly.
    """

    text: str
    program: cel.Program | None
    fault: str = ""
    paths: frozenset[tuple[str, ...]] = frozenset()

    def reads(self, root: str) -> bool:
        """Return whether the expression reads `root`, a variable of the environment such as `authorizer`."""
        return root in _list_roots(self.paths)


@lru_cache(maxsize=4096)
def _list_roots(paths: frozenset[tuple[str, ...]]) -> frozenset[str]:
    """The first names of paths, remembered because they are read for every finding."""
    return frozenset(path[0] for path in paths)


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A policy with its expressions compiled, in the policy's order. Never part of a noun, never pickled.

    `excess` is the reason why the policy was not compiled at all. `watch` receives every activation before it is evaluated.
    `written` are all variables in the order of the manifest: of several with the same name, only the last is ever evaluated.
    What expressions read may be a secret, but for what is shown of the documents of an admission request: `open_roots` are the
    other variables of the environment whose values may be shown, `object_roots` those through which an expression reads other
    objects, of which names and kinds may be shown. `own_errors` are the beginnings of errors about requests that are made
    through a variable: such an error quotes nothing of the response. `read_fields` are the access paths of what decides besides the
    expressions; a last step that ends with `/*` stands for every key with the beginning before the sign.
    """

    policy: Policy
    variables: Mapping[str, Expression]
    conditions: tuple[tuple[NamedExpression, Expression], ...]
    validations: tuple[tuple[Validation, Expression, Expression | None], ...]
    annotations: tuple[Expression, ...]
    mutations: tuple[Expression, ...] = ()
    checks: tuple[Check, ...] = field(default=())
    cost_bounds: CostBounds | None = None
    watch: Callable[[Mapping[str, object]], None] | None = None
    written: tuple[Expression, ...] = ()
    excess: str = ""
    plugin: Plugin = VALIDATING
    open_roots: frozenset[str] = frozenset()
    object_roots: frozenset[str] = frozenset()
    own_errors: Mapping[str, str] = field(default_factory=dict)
    read_fields: frozenset[tuple[str, ...]] = frozenset()

    @classmethod
    def make_without_expressions(
        cls, policy: Policy, checks: tuple[Check, ...], read_fields: frozenset[tuple[str, ...]] = frozenset()
    ) -> CompiledPolicy:
        """A policy of a language without expressions, with the checks that are evaluated: the evaluator alone knows how."""
        bounds = CostBounds({}, ())
        return cls(policy, {}, (), (), (), checks=checks, cost_bounds=bounds, read_fields=read_fields)

    def expressions(self) -> Iterator[tuple[str, Expression]]:
        """Pairs of a path in the manifest, such as `spec.variables[0].expression`, and the expression there, in order."""
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

    def make_activation(self, base: Mapping[str, object], *, metered: bool = False) -> dict[str, object]:
        """The values of an evaluation: `base`, and `variables`, which each activation evaluates anew.

        With `metered`, the cost of the variables is kept until an expression reads them.
        """
        has_variables = bool(self.variables) or metered
        variables = Variables(self.variables, base, metered=metered) if has_variables else _NO_VARIABLES
        activation = {**base, "variables": variables}
        if self.watch is not None:
            self.watch(activation)
        return activation

    def must_count_cost(self, inputs: Mapping[str, object]) -> bool:
        """Return whether the cost of the expressions must be counted, because no bound proves that it stays within the limits."""
        return self.cost_bounds is None or not self.cost_bounds.is_within_limits(inputs)

    def reads(self, check: Check) -> frozenset[tuple[str, ...]]:
        """The access paths of the expressions that decide a check, including those of the variables that they use.

        A path begins with a variable of the environment: `("object", "spec", "replicas")`.
        """
        return frozenset().union(*(expression.paths for expression in self.list_deciding(check)))

    def list_deciding(self, check: Check) -> tuple[Expression, ...]:
        """The expressions whose values decide a check; none for a faulty configuration, and in a language without expressions."""
        of_check = slice(check.index, check.index + 1)
        match check.kind:
            case CheckKind.VALIDATION:
                return tuple(expression for _, expression, _ in self.validations[of_check])
            case CheckKind.AUDIT_ANNOTATION:
                return self.annotations[of_check]
            case CheckKind.MUTATION:
                return self.mutations[of_check]
            case CheckKind.CONDITIONS:
                return tuple(expression for _, expression in self.conditions)
            case CheckKind.CONFIGURATION:
                return ()
            case _ as never:
                assert_never(never)

    def list_evaluated(self) -> Iterator[Expression]:
        """The expressions that are evaluated for an object that passes every check."""
        yield from (expression for _, expression in self.conditions)
        yield from (expression for _, expression, _ in self.validations)
        yield from self.annotations
        yield from self.mutations

    def list_message_reads(self, index: int) -> frozenset[tuple[str, ...]]:
        """The access paths of a validation's messageExpression, including those of the variables that it uses."""
        messages = (message for _, _, message in self.validations[index : index + 1] if message)
        return frozenset().union(*(message.paths for message in messages))


def compile_policy(
    policy: Policy, rules: Minor = NEWEST, plugin: Plugin = VALIDATING, *, new: bool = False
) -> CompiledPolicy:
    """Compile every expression of a policy; a compilation error is kept as a fault, as an API server keeps it.

    `rules` is the Kubernetes release that evaluates, in its `plugin`. A `new` policy is being created or changed: until the
    next release, it cannot use the features that this release adds. A policy that expands to too many nodes has an `excess`.
    """
    try:
        with _pause_collector():
            return _compile_expressions(policy, rules, plugin, new=new)
    except cel.ExpressionTooLarge as why:
        return replace(leave_uncompiled(policy, why), plugin=plugin)


@contextmanager
def _pause_collector() -> Iterator[None]:
    """Pause the garbage collector: compiled expressions stay in memory, and each collection would scan all of them again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _compile_expressions(policy: Policy, rules: Minor, plugin: Plugin, *, new: bool) -> CompiledPolicy:
    allowance = Allowance()
    environment = cel.Environment(version=rules, compatible=(rules[0], rules[1] - 1) if new else None)
    environment = environment.extend(cel.PARAMS) if policy.param_kind else environment
    if new and not plugin.declares_variables and not policy.variables:
        environment = environment.remove_variable("variables")
    variables: dict[str, Expression] = {}
    expressions: list[Expression] = []

    def compiled(text: str, environment: cel.Environment) -> Expression:
        return allowance.take(compile_expression(text, environment, variables))

    for variable in policy.variables:
        expression = allowance.take(compile_variable(variable.expression, environment.extend(cel.AUTHORIZATION)))
        variables[variable.name] = expression
        expressions.append(expression)
        result = expression.program.result_type if expression.program else cel.DYN
        environment = environment.add_variable(variable.name, result)
    authorized = environment.extend(cel.AUTHORIZATION)
    validations = tuple(
        (
            validation,
            compiled(validation.expression, authorized.require_results(cel.BOOL)),
            compiled(validation.message_expression, environment.require_results(cel.STRING))
            if validation.message_expression.strip()
            else None,
        )
        for validation in policy.validations
    )
    compiled_policy = CompiledPolicy(
        policy=policy,
        variables=variables,
        conditions=tuple(
            (condition, compiled(condition.expression, authorized.require_results(cel.BOOL)))
            for condition in policy.match_conditions
        ),
        validations=validations,
        annotations=tuple(
            compiled(annotation.value_expression, authorized.require_results(cel.STRING, cel.NULL))
            for annotation in policy.audit_annotations
        ),
        mutations=tuple(
            compiled(mutation.expression, _extend_for_mutation(mutation, authorized)) for mutation in policy.mutations
        ),
        checks=list_checks(policy),
        written=tuple(expressions),
        plugin=plugin,
    )
    return replace(compiled_policy, cost_bounds=_make_cost_bounds(compiled_policy))


class Allowance:
    """The number of nodes to which the expressions of one policy may still expand.

    The limit keeps a policy from stalling a scan.
    """

    def __init__(self) -> None:
        self._left = cel.LARGEST

    def take(self, expression: Expression) -> Expression:
        """Return the expression and subtract its size from the allowance. Raises ExpressionTooLarge if the size exceeds the allowance."""
        self._left -= expression.program.size if expression.program else 0
        if self._left < 0:
            raise cel.ExpressionTooLarge(f"its expressions expand to more than {cel.LARGEST:,} nodes")
        return expression


def leave_uncompiled(policy: Policy, error: cel.ExpressionTooLarge) -> CompiledPolicy:
    """A policy that is not compiled: every check of it is skipped, on every object that it matches."""
    return CompiledPolicy(
        policy=policy,
        variables={},
        conditions=(),
        validations=tuple(
            (validation, Expression(validation.expression, None), None) for validation in policy.validations
        ),
        annotations=tuple(Expression(annotation.value_expression, None) for annotation in policy.audit_annotations),
        mutations=tuple(Expression(mutation.expression, None) for mutation in policy.mutations),
        checks=list_checks(policy),
        excess=f"compiling the policy takes more than Assay spends on one: {error}",
    )


def _make_cost_bounds(compiled: CompiledPolicy) -> CostBounds:
    validations = [part for _, expression, message in compiled.validations for part in (expression, message)]
    shares = (
        _make_budget_group(CONDITIONS, [expression for _, expression in compiled.conditions]),
        _make_budget_group(RUNTIME, validations),
        _make_budget_group(RUNTIME, compiled.annotations),
        *(_make_budget_group(RUNTIME, [expression]) for expression in compiled.mutations),
    )
    return CostBounds(compiled.variables, shares)


def _make_budget_group(budget: int, expressions: Sequence[Expression | None]) -> BudgetGroup:
    return BudgetGroup(
        budget,
        tuple(
            expression.program
            for expression in expressions
            if expression is not None and expression.program is not None
        ),
    )


def list_checks(policy: Policy) -> tuple[Check, ...]:
    """Every check of a policy, in the order of its check results."""
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


def _extend_for_mutation(mutation: Mutation, environment: cel.Environment) -> cel.Environment:
    result = cel.PATCH_LIST if mutation.patch_type == "JSONPatch" else cel.OBJECT
    return cel.allow_patches(environment).require_results(result)


def compile_expression(text: str, environment: cel.Environment, variables: Mapping[str, Expression]) -> Expression:
    """Compile an expression; a compilation error is kept. Its paths are its own and those of the variables that it reads.

    Raises ExpressionTooLarge for an expression that expands to too many nodes.
    """
    compiled = compile_variable(text, environment)
    return compiled if compiled.program is None else replace(compiled, paths=_find_paths(compiled, variables))


def compile_variable(text: str, environment: cel.Environment) -> Expression:
    """Compile a variable. Raises ExpressionTooLarge like `compile_expression`.

    Its paths are its own alone, so that a thousand variables in a chain do not repeat the same paths.
    """
    try:
        program = cel.compile(text, environment)
    except cel.CompileError as error:
        return Expression(text, None, error.detail)
    return Expression(text, program, paths=program.reads)


def _find_paths(compiled: Expression, variables: Mapping[str, Expression]) -> frozenset[tuple[str, ...]]:
    paths = set(compiled.paths)
    stack, seen = [compiled], set[str]()
    while stack:
        for name in _list_names(stack.pop(), variables) - seen:
            seen.add(name)
            stack.append(variables[name])
            paths |= variables[name].paths
    return frozenset(paths)


def _list_names(expression: Expression, variables: Mapping[str, Expression]) -> set[str]:
    """The variables that an expression reads by itself."""
    if ("variables",) in expression.paths:
        return set(variables)
    return {path[1] for path in expression.paths if path[0] == "variables" and path[1] in variables}

"""Which checks of a replayed object may read what its snapshot withholds: they are skipped, because their outcome is not known.

Derived from the flow of data before the evaluation, as `taint` derives which results may have a secret. A path that leads into a part that
is withheld, or to a value that has such a part, may read it. Policies whose checks depend on each other are skipped as a whole.

Rules: `docs/adr/0087-a-snapshot-replays.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy, InvocationResult, get_request_namespace, list_requests
from scanner.audit.sensitive_fields import MASK, iterate_items
from scanner.audit.taint import list_read_places, locate_in_document, overlaps
from scanner.model.json import Json, JsonObject, as_object, dig
from scanner.model.outcome import Change, CheckKind, CheckResult, Errored, Outcome, Skipped, SkipReason, WouldChange
from scanner.model.policy import MatchResources, PolicyKey
from scanner.model.resource import Kind, Resource, UserInfo
from scanner.model.selector import Selector
from scanner.model.withheld import has_withheld, is_withheld

Path = tuple[str, ...]
Paths = frozenset[Path]

PREFIX: Final = "/*"
"""The end of a step that stands for every key with the beginning before it."""
_WITHHELD: Final = Skipped(SkipReason.REDACTED, "the check may read what the snapshot withholds")
_USER: Final = (("request", "userInfo", "extra"), ("request", "userInfo", "uid"))
_CONTAINER: Final = "[]"
"""A step of a flow: a list or map that an expression makes, with the value before it."""
_TEMPLATES: Final = (("spec", "template"), ("template",), ("spec", "jobTemplate", "spec", "template"))


class Withheld(Struct, frozen=True):
    """What a snapshot withholds besides the evaluated objects.

    `readers` are the policies whose expressions read other objects of which it withholds parts, `params` those with such params,
    `user` whether it withholds facts about the user of the requests.
    """

    readers: frozenset[PolicyKey] = frozenset()
    params: frozenset[PolicyKey] = frozenset()
    namespaces: frozenset[str] = frozenset()
    user: bool = False

    @property
    def concerns_every_object(self) -> bool:
        """Return whether checks of objects of which nothing is withheld may read a withheld part."""
        return bool(self.readers or self.params or self.namespaces or self.user)


NOTHING: Final = Withheld()


def withholds_user(user: UserInfo) -> bool:
    """Return whether the snapshot withholds facts about a user."""
    return is_withheld(user.uid) or any(is_withheld(key) for key, _ in user.extra)


def may_read(paths: Iterable[Path], document: Json) -> bool:
    """Return whether a path leads into, or to a value with, a withheld part of a document; paths are without its name."""
    return any(_leads_to_withheld(document, path) for path in paths)


def select_paths(compiled: CompiledPolicy, root: str) -> Paths:
    """The access paths of all expressions of a policy in one document, without its name."""
    every = (locate_in_document(path) for path in _list_paths(compiled))
    return frozenset(steps for name, steps in every if name == root)


class WithheldReads:
    """The checks that may read what a snapshot withholds, for the objects of one context."""

    def __init__(self, context: EvaluationContext, withheld: Withheld) -> None:
        """Take the context of the evaluation, and what is withheld besides the objects."""
        self._context = context
        self._withheld = withheld
        self._paths: dict[int, tuple[CompiledPolicy, Paths]] = {}

    def concern(self, resource: Resource, marked: JsonObject, policies: Iterable[BoundPolicy]) -> bool:
        """Return whether a check of one of the policies may read a withheld part for this object, or a mutation may write one.

        `marked` is the object with its withheld parts marked; the evaluation itself reads plain values in their place.
        """
        of_object = has_withheld(marked)
        if not of_object and not self._withheld.concerns_every_object:
            return False
        return any(self._concerns(bound, resource, marked, of_object=of_object) for bound in policies)

    def _concerns(self, bound: BoundPolicy, resource: Resource, marked: JsonObject, *, of_object: bool) -> bool:
        if bound.policy.key in self._withheld.readers or bound.policy.key in self._withheld.params:
            return True
        if of_object and bound.combination is not None:
            return True
        paths = self._get_paths(bound.compiled)
        return self.hides_match(bound, resource, marked) or self._reads(bound, paths, resource, marked, None)

    def hides_match(self, bound: BoundPolicy, resource: Resource, marked: JsonObject) -> bool:
        """Return whether a selector of the policy or of a binding reads a withheld label: whether it matches is not known."""
        return self.hides_labels((bound.policy.match, *(binding.match for binding in bound.bindings)), resource, marked)

    def hides_labels(self, matches: Iterable[MatchResources | None], resource: Resource, marked: JsonObject) -> bool:
        """Return whether a selector reads a withheld label of the object or of its namespace."""
        labels = dig(marked, "metadata", "labels")
        of_namespace = dig(self._context.find_namespace(get_request_namespace(resource)), "metadata", "labels")
        return any(
            _selects_withheld(match.object_selector, labels)
            or _selects_withheld(match.namespace_selector, of_namespace)
            for match in matches
            if match
        )

    def skip(
        self, bound: BoundPolicy, resource: Resource, marked: JsonObject, original: Kind
    ) -> tuple[InvocationResult, ...] | None:
        """The results of a policy without an evaluation, if none of its checks can be known; else None."""
        if not self._hides_all(bound, resource, marked):
            return None
        pending = list_requests(bound, resource, original, self._context)
        return tuple(result if result.request is None else _skip_all(bound, result) for result in pending)

    def _hides_all(self, bound: BoundPolicy, resource: Resource, marked: JsonObject) -> bool:
        """Return whether the policy may read a withheld part, and its checks depend on each other or on what they ask."""
        if bound.policy.key in self._withheld.readers:
            return True
        paths = self._get_paths(bound.compiled)
        asks = any(path[0].startswith("authorizer") for path in paths)
        counts = bound.compiled.must_count_cost({"object": resource.body, "oldObject": resource.body})
        return (asks or counts) and self._reads(bound, paths, resource, marked, None)

    def withhold(
        self, bound: BoundPolicy, results: Sequence[InvocationResult], marked: JsonObject, *, together: bool
    ) -> tuple[InvocationResult, ...]:
        """The results with `skipped: redacted` instead of each outcome that may depend on what is withheld.

        With `together`, the changes of a mutation depend on policies that may read a withheld part.
        """
        return tuple(self._withhold(bound, result, marked, together=together) for result in results)

    def reads_any(self, bound: BoundPolicy, resource: Resource, marked: JsonObject) -> bool:
        """Return whether an expression of the policy may read a withheld part of the object or of its namespace."""
        return bound.policy.key in self._withheld.readers or self._reads(
            bound, self._get_paths(bound.compiled), resource, marked, None
        )

    def _withhold(
        self, bound: BoundPolicy, result: InvocationResult, marked: JsonObject, *, together: bool
    ) -> InvocationResult:
        if result.request is None or not result.check_results:
            return result
        compiled, resource, param = bound.compiled, result.resource, result.invocation.param
        conditions = compiled.read_fields | _list_places(compiled, [each for _, each in compiled.conditions])
        if self._reads(
            bound, conditions if bound.independent_checks else self._get_paths(compiled), resource, marked, param
        ):
            return _skip_all(bound, result)
        if bound.combination is not None:
            unknown = any(_may_depend(each.outcome, marked, together=together) for each in result.check_results)
            return _skip_all(bound, result) if unknown else result
        if not bound.independent_checks:
            return result
        checks = tuple(self._skip_check(bound, each, resource, marked, param) for each in result.check_results)
        return result._replace(check_results=checks)

    def _skip_check(
        self, bound: BoundPolicy, result: CheckResult, resource: Resource, marked: JsonObject, param: Resource | None
    ) -> CheckResult:
        check, compiled = result.check, bound.compiled
        of_check = slice(check.index, check.index + 1) if check.kind is CheckKind.VALIDATION else slice(0)
        messages = [message for _, _, message in compiled.validations[of_check] if message]
        expressions = [*compiled.list_deciding(check), *messages]
        reads = self._reads(bound, _list_places(compiled, expressions), resource, marked, param)
        return CheckResult(check, _WITHHELD) if reads else result

    def _reads(
        self, bound: BoundPolicy, paths: Paths, resource: Resource, marked: JsonObject, param: Resource | None
    ) -> bool:
        """Return whether one of the paths may read a withheld part; without a param those of params read none."""
        namespace = self._context.find_namespace(get_request_namespace(resource))
        bodies = tuple(_list_bodies(bound, marked))
        return any(self._leads(path, bodies, None if param is None else param.body, namespace) for path in paths)

    def _leads(self, path: Path, bodies: Iterable[JsonObject], param: Json, namespace: Json) -> bool:
        root, steps = locate_in_document(path)
        match root:
            case "object" | "oldObject":
                return any(_leads_to_withheld(body, steps) for body in bodies)
            case "params":
                return _leads_to_withheld(param, steps)
            case "namespaceObject":
                return _leads_to_withheld(namespace, steps)
            case "request":
                of_user = self._withheld.user and any(overlaps(path, area) for area in _USER)
                return of_user or (path == ("request",) and any(map(has_withheld, bodies)))
            case _:
                return False

    def _get_paths(self, compiled: CompiledPolicy) -> Paths:
        known = self._paths.get(id(compiled))
        if known is None:
            # The entry keeps the policy alive, so that no other gets its id.
            known = self._paths[id(compiled)] = compiled, _list_paths(compiled)
        return known[1]


def _list_paths(compiled: CompiledPolicy) -> Paths:
    """The places that may decide a result of a policy: those of its expressions, and what it reads besides them."""
    return compiled.read_fields | _list_places(compiled, [expression for _, expression in compiled.expressions()])


def _list_places(compiled: CompiledPolicy, expressions: Iterable[Expression]) -> Paths:
    return frozenset[Path]().union(*(list_read_places(compiled, each) for each in expressions))


def _list_bodies(bound: BoundPolicy, body: JsonObject) -> Iterator[JsonObject]:
    """What expressions may see as the object: the object itself, or a Pod that a language makes of its template."""
    yield body
    if bound.evaluator.reads_whole_object:
        templates = (dig(body, *place) for place in _TEMPLATES)
        yield from (as_object(template) for template in templates if template is not None)


def count_redacted(result: InvocationResult) -> int:
    """The number of checks of an invocation that may read what the snapshot withholds."""
    return sum(each.outcome is _WITHHELD for each in result.check_results)


def _skip_all(bound: BoundPolicy, result: InvocationResult) -> InvocationResult:
    return result._replace(check_results=tuple(CheckResult(check, _WITHHELD) for check in bound.compiled.checks))


def _leads_to_withheld(value: Json, steps: Sequence[str]) -> bool:
    """Return whether the value at a path is withheld, has a withheld part, or lies in one."""
    for at, step in enumerate(steps):
        if is_withheld(value):
            return True
        if step == cel.SHAPE:
            return False
        if step == _CONTAINER:
            return has_withheld(value)
        if step == cel.ELEMENTS:
            return any(_leads_to_withheld(item, steps[at + 1 :]) for _, item in iterate_items(value))
        if step.endswith(PREFIX):
            beginning = step.removesuffix(PREFIX)
            return any(is_withheld(item) for key, item in as_object(value).items() if key.startswith(beginning))
        if isinstance(value, list):
            return has_withheld(value)
        if not isinstance(value, Mapping):
            return False
        value = value.get(step)
    return has_withheld(value)


def _selects_withheld(selector: Selector, labels: Json) -> bool:
    """Return whether a selector reads a label that is withheld."""
    if is_withheld(labels):
        return not selector.empty
    known = as_object(labels)
    return any(is_withheld(known.get(requirement.key)) for requirement in selector.requirements)


def _may_depend(outcome: Outcome, marked: JsonObject, *, together: bool) -> bool:
    """Return whether a mutation may write, move or test a withheld part, so that its outcome is not known."""
    match outcome:
        case WouldChange(patch=patch):
            return together or any(touches_withheld(change, marked) for change in patch)
        case Errored():
            return has_withheld(marked)
        case _:
            return False


def touches_withheld(change: Change, marked: JsonObject) -> bool:
    """Return whether a change concerns a withheld part, or may have a copy of one as its value."""
    if _may_be_copy(change.value) and has_withheld(marked):
        return True
    value: Json = marked
    for step in change.path.split("/")[1:]:
        if is_withheld(value):
            return True
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return False
    return has_withheld(value)


def _may_be_copy(value: Json) -> bool:
    """Return whether a value has what stands for a withheld part: a mask, or an empty map or list."""
    if isinstance(value, str):
        return MASK in value
    if isinstance(value, Mapping | Sequence):
        return not value or any(_may_be_copy(item) for _, item in iterate_items(value))
    return False

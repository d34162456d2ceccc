"""CEL's operators as Python's own, where they are the same, or raise where they are not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from scanner.cel.functions.python_forms import ArithmeticForm, ComparisonForm, DivisionForm, MethodForm, PlainForm
from scanner.cel.generation.python_terms import (
    PLAIN,
    WHOLE,
    PythonNames,
    Term,
    TermKind,
    make_class,
    make_class_test,
    make_conditional,
    make_name,
)
from scanner.cel.types.type_system import STRING
from scanner.cel.values import equality
from scanner.cel.values.values import INT_MAX, INT_MIN, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scanner.cel.functions.declaration import Overload
    from scanner.cel.functions.python_forms import PythonForm

_EXACT_DOUBLES = 2**53
_WORTH_JOINING = 4
"""The number of texts that `join` adds faster than `+`."""
_COMPARISONS: dict[str, type[ast.cmpop]] = {"<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE}
_ARITHMETIC: dict[str, type[ast.operator]] = {"+": ast.Add, "-": ast.Sub, "*": ast.Mult}


class Operations:
    """Operators on terms, for a function with these names."""

    def __init__(self, names: PythonNames) -> None:
        self._names = names

    def compare(self, left: Term, right: Term, *, equal: bool) -> ast.expr | None:
        """Return an inlined comparison where Python's comparison equals CEL's; None where it may differ."""
        same: ast.cmpop = ast.Eq() if equal else ast.NotEq()
        identical: ast.cmpop = ast.Is() if equal else ast.IsNot()
        kinds = {left.kind, right.kind}
        if isinstance(left.code, ast.Constant) and isinstance(right.code, ast.Constant):
            return None
        if TermKind.NULL in kinds:
            return ast.Compare(left.code, [identical], [right.code])
        if kinds == {TermKind.BOOL} or kinds <= WHOLE:
            return ast.Compare(left.code, [same], [right.code])
        if TermKind.STRING in kinds and (kinds <= PLAIN or left.kind is TermKind.STRING):
            return ast.Compare(left.code, [same], [right.code])
        if not kinds <= PLAIN:
            return None
        for constant, other in ((right, left), (left, right)):
            if isinstance(constant.code, ast.Constant):
                code = self._compare_to(other, constant.code, equal=equal)
                if code is not None:
                    return code
        return None

    def _compare_to(self, other: Term, constant: ast.Constant, *, equal: bool) -> ast.expr | None:
        """Return the comparison of a JSON value with a literal; True and False are not numbers."""
        value = constant.value
        if type(value) is bool:
            return ast.Compare(other.code, [ast.Is() if equal else ast.IsNot()], [constant])
        if not isinstance(value, int | float) or abs(value) >= _EXACT_DOUBLES:
            return None
        if value not in (0, 1):
            return ast.Compare(other.code, [ast.Eq() if equal else ast.NotEq()], [constant])
        storing, name = self._names.keep(other.code)
        same = ast.Compare(storing, [ast.Eq()], [constant])
        number = ast.Compare(make_class(make_name(name)), [ast.IsNot()], [self._names.use_class(bool)])
        both = ast.BoolOp(ast.And(), [same, number])
        return both if equal else ast.UnaryOp(ast.Not(), both)

    def compare_exactly(self, left: Term, right: Term, *, equal: bool) -> ast.expr:
        """Return a comparison of any two values, inlined where the left one is a string."""
        storing, name = self._names.keep(left.code)
        same: ast.cmpop = ast.Eq() if equal else ast.NotEq()
        function = equality.equal if equal else equality.unequal
        return make_conditional(
            make_class_test(storing, self._names.use_class(str)),
            ast.Compare(make_name(name), [same], [right.code]),
            self._names.call(function, make_name(name), right.code),
        )

    def inline(
        self, form: PythonForm | None, terms: Sequence[Term], run: Callable[..., Value], overload: Overload | None
    ) -> Term | None:
        """Return Python's operation where its result is CEL's, or where it raises; None where there is no such form.

        `run` is the exact implementation, which the term calls for values of other classes. `overload` is the only candidate: a
        value of another type is an error, and the types of some variables are not those of their values.
        """
        match form, terms:
            case PlainForm.SIZE, [operand] if operand.kind in PLAIN | {TermKind.LIST}:
                self._names.values["len"] = len
                return Term(ast.Call(make_name("len"), [operand.code], []), TermKind.SIZE)
            case MethodForm(name=name), [operand, other]:
                method = ast.Attribute(operand.code, name, ast.Load())
                return Term(ast.Call(method, [other.code], []), TermKind.BOOL)
            case PlainForm.CONTAINS, [operand, other]:
                return self._search(operand, other, run)
            case PlainForm.TEXT, [operand]:
                return operand if operand.kind is TermKind.STRING else self._convert_to_text(operand, run, overload)
            case PlainForm.MEMBERSHIP, [element, container]:
                return self._search_container(element, container)
            case ComparisonForm(sign=sign), [left, right]:
                return self._order(_COMPARISONS[sign](), left, right, run)
            case ArithmeticForm(sign=sign), [left, right]:
                return self._calculate(sign, left, right, run)
            case DivisionForm(sign=sign), [left, right]:
                return self._divide(sign, left, right, run)
            case _:
                return None

    def _convert_to_text(self, operand: Term, run: Callable[..., Value], overload: Overload | None) -> Term | None:
        if overload is not None and overload.arguments != (STRING,):
            return None
        storing, name = self._names.keep(operand.code)
        converted: ast.expr = ast.Call(self._names.share(run, "string"), [make_name(name)], [])
        if overload is None:
            printed = ast.Call(self._names.use_class(str), [make_name(name)], [])
            converted = make_conditional(
                make_class_test(make_name(name), self._names.use_class(int)), printed, converted
            )
        return Term(
            make_conditional(make_class_test(storing, self._names.use_class(str)), make_name(name), converted),
            TermKind.STRING,
        )

    def _search(self, operand: Term, other: Term, run: Callable[..., Value]) -> Term:
        if operand.kind is TermKind.STRING:
            return Term(ast.Compare(other.code, [ast.In()], [operand.code]), TermKind.BOOL)
        storing, name = self._names.keep(operand.code)
        inside = ast.Compare(other.code, [ast.In()], [make_name(name)])
        otherwise = ast.Call(self._names.share(run, "contains"), [make_name(name), other.code], [])
        return Term(
            make_conditional(make_class_test(storing, self._names.use_class(str)), inside, otherwise), TermKind.BOOL
        )

    def _search_container(self, element: Term, container: Term) -> Term:
        if element.kind is not TermKind.STRING:
            return Term(self._names.call(equality.contains, container.code, element.code), TermKind.BOOL)
        storing, name = self._names.keep(container.code)
        inside = ast.Compare(element.code, [ast.In()], [make_name(name)])
        otherwise = self._names.call(equality.contains, make_name(name), element.code)
        return Term(
            make_conditional(make_class_test(storing, self._names.use_class(dict)), inside, otherwise), TermKind.BOOL
        )

    def _order(self, operator: ast.cmpop, left: Term, right: Term, run: Callable[..., Value]) -> Term:
        kinds = {left.kind, right.kind}
        if kinds <= WHOLE or kinds == {TermKind.STRING}:
            return Term(ast.Compare(left.code, [operator], [right.code]), TermKind.BOOL)
        ordered = self._names.share(run, type(operator).__name__)
        for at_, (whole, other) in enumerate(((right, left), (left, right))):
            if whole.kind in WHOLE and other.kind in (TermKind.JSON, TermKind.ANY):
                storing, name = self._names.keep(other.code)
                pair = (make_name(name), whole.code) if at_ == 0 else (whole.code, make_name(name))
                compared = ast.Compare(pair[0], [operator], [pair[1]])
                otherwise = ast.Call(ordered, list(pair), [])
                return Term(
                    make_conditional(make_class_test(storing, self._names.use_class(int)), compared, otherwise),
                    TermKind.BOOL,
                )
        return Term(ast.Call(ordered, [left.code, right.code], []), TermKind.BOOL)

    def _calculate(self, sign: str, left: Term, right: Term, run: Callable[..., Value]) -> Term | None:
        operator = _ARITHMETIC[sign]()
        kinds = {left.kind, right.kind}
        if sign == "+" and TermKind.STRING in kinds:
            return Term(_concatenate(left, right), TermKind.STRING)
        if sign == "+" and kinds & {TermKind.DOCUMENTS, TermKind.LIST}:
            kind_of_lists = TermKind.DOCUMENTS if kinds <= PLAIN else TermKind.LIST
            return Term(ast.BinOp(left.code, operator, right.code), kind_of_lists)
        if sign == "+" and kinds <= PLAIN and not kinds & WHOLE:
            return self._add(left, right, run)
        if not (right.kind in WHOLE and left.kind in WHOLE | {TermKind.JSON, TermKind.ANY}):
            return None
        storing, operand = self._names.keep(left.code)
        result, kept_result = self._names.add_local("number"), ast.BinOp(make_name(operand), operator, right.code)
        number = ast.NamedExpr(target=ast.Name(result, ast.Store()), value=kept_result)
        fits = ast.Compare(ast.Constant(INT_MIN), [ast.LtE(), ast.LtE()], [number, ast.Constant(INT_MAX)])
        test = ast.BoolOp(ast.And(), [make_class_test(storing, self._names.use_class(int)), fits])
        otherwise = ast.Call(self._names.share(run, type(operator).__name__), [make_name(operand), right.code], [])
        return Term(make_conditional(test, make_name(result), otherwise), TermKind.INT)

    def _add(self, left: Term, right: Term, run: Callable[..., Value]) -> Term:
        """Return a sum of two JSON values, inlined for lists."""
        first, left_name = self._names.keep(left.code)
        second, other = self._names.keep(right.code)
        operands: list[ast.expr] = [make_name(left_name), make_name(other)]
        are_lists = ast.Compare(
            make_class(first), [ast.Is(), ast.Is()], [make_class(second), self._names.use_class(list)]
        )
        added = ast.Call(self._names.share(run, "add"), operands, [])
        return Term(make_conditional(are_lists, ast.BinOp(operands[0], ast.Add(), operands[1]), added), TermKind.JSON)

    def _divide(self, sign: str, left: Term, right: Term, run: Callable[..., Value]) -> Term | None:
        """Return the division by a positive literal; None for any other divisor.

        For operands that are not negative, Python's quotient and remainder equal CEL's.
        """
        divisor = right.code.value if isinstance(right.code, ast.Constant) else None
        if type(divisor) is not int or divisor <= 0 or left.kind not in WHOLE | {TermKind.JSON, TermKind.ANY}:
            return None
        operator: ast.operator = ast.Mod() if sign == "%" else ast.FloorDiv()
        storing, operand = self._names.keep(left.code)
        positive = ast.Compare(make_name(operand), [ast.GtE()], [ast.Constant(0)])
        test = ast.BoolOp(ast.And(), [make_class_test(storing, self._names.use_class(int)), positive])
        otherwise = ast.Call(self._names.share(run, type(operator).__name__), [make_name(operand), right.code], [])
        divided = ast.BinOp(make_name(operand), operator, right.code)
        return Term(make_conditional(test, divided, otherwise), TermKind.INT)


# --- texts


def _concatenate(left: Term, right: Term) -> ast.expr:
    """Return the sum of texts; many are joined at once. Both ways raise where an operand is not a text."""
    parts = [*(_list_parts(left.code) if left.kind is TermKind.STRING else [left.code]), right.code]
    if len(parts) < _WORTH_JOINING:
        return ast.BinOp(left.code, ast.Add(), right.code)
    return ast.Call(ast.Attribute(ast.Constant(""), "join", ast.Load()), [ast.Tuple(parts, ast.Load())], [])


def _list_parts(code: ast.expr) -> list[ast.expr]:
    """Return the operands of a sum of texts, as `_concatenate` has written it."""
    match code:
        case ast.BinOp(first, ast.Add(), second):
            return [*_list_parts(first), second]
        case ast.Call(ast.Attribute(ast.Constant(""), "join"), [ast.Tuple(parts)]):
            return parts
        case _:
            return [code]

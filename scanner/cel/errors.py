"""The errors of compiling and evaluating CEL, in kube-apiserver's words, but for errors of syntax.

The texts become part of findings, so they are data, not our wording.

Rules: `docs/semantics/messages.md#errors-of-expressions`, `docs/semantics/messages.md#run-time-errors`.
"""

from __future__ import annotations

from scanner.errors import AssayError


class CompileError(AssayError):
    """The API would reject this expression.

    `str(error)` is upstream's text without its leading phrase (`ERROR: <input>:1:8: undefined field 'foo'…`, or
    `must evaluate to bool but got dyn`); `detail` is the whole phrase (`compilation failed: ERROR: …`).
    """

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


class ExpressionTooLarge(AssayError):
    """An expression that exceeds the limits of Assay's compiler, though a server may accept it; the message names the excess."""


class InstantiationError(AssayError):
    """A constant part of an expression cannot be computed, so that there is no program; the message is the cause."""


class EvaluationError(AssayError):
    """One evaluation ended in an error; the message is the text after `resulted in error: ` in an API response."""


class EvaluationStopped(EvaluationError):
    """An error that no logical operator absorbs: it ends the whole evaluation."""


class CostExceeded(EvaluationStopped):
    """The evaluation used more than its limit of CEL cost."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Interrupted(EvaluationStopped):
    """The evaluation took far longer than any request may, without costing much."""

    def __init__(self) -> None:
        super().__init__("operation interrupted")

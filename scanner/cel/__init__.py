"""A compiler for CEL as kube-apiserver 1.36 runs it; the package does not depend on policies.

`compile(text, environment)` returns a `Program`, `Program.evaluate(activation)` a value, `Program.measure(activation)` its cost
as well, and `Program.bound(extents)` the maximum of that cost. Compile errors and run-time errors carry the texts of
kube-apiserver, but for errors of syntax.

The folders in the words of compilers, in the order of the passes, with the packages of cel-go and Kubernetes that they mirror:

    syntax       lexer, parser and macro expansion: text to tree                cel-go `parser`, `common/ast`
    checking     type checker: declarations, types, overload resolution         cel-go `checker`, `cel/validator.go`
    analysis     constant folding, and data flow over the checked tree          cel-go `interpreter/decorators.go`; data flow: none
    evaluation   interpreter: the tree as closures, exact in values and errors  cel-go `interpreter`
    generation   code generator: the tree as a Python function, fast            none
    cost         static estimate (`bounds`), and an interpreter that counts     cel-go `checker/cost.go`, `interpreter/runtimecost.go`
    explanation  provenance: from a result back to places of the input          none

    types        the type system, and the assignability of types                cel-go `common/types`
    values       run-time values, and what operators and conversions do         cel-go `common/types`
    functions    standard library and extensions, with the price of each call   cel-go `common/stdlib`, `ext`, apiserver `pkg/cel/library`
    protobuf     messages that expressions construct                            cel-go `common/types/pb`

`program.py` is the driver. The generated function is a fast path without an answer of its own for hard cases: it raises, and the
interpreter evaluates again. `releases.py` lists what each Kubernetes release changes in any pass.
"""

from scanner.cel.analysis.deep_reads import ELEMENTS, SHAPE
from scanner.cel.analysis.flows import Flow, follow_variables
from scanner.cel.analysis.wrapper_differences import WrapperDifference, find_wrapper_differences
from scanner.cel.checking.env import AUTHORIZATION, PARAMS, Environment
from scanner.cel.checking.patches import JSON_PATCH, OBJECT, PATCH_LIST, allow_patches
from scanner.cel.cost.meter import PER_CALL_LIMIT
from scanner.cel.errors import CompileError, CostExceeded, EvaluationError, ExpressionTooLarge
from scanner.cel.explanation.direct import DirectParts, explain_directly, find_direct_parts, read_direct_parts
from scanner.cel.explanation.explained import DecidingPart, Explanation
from scanner.cel.explanation.outline import OutlinePart, outline
from scanner.cel.explanation.places import Place
from scanner.cel.explanation.reasons import explain
from scanner.cel.functions.authorizer import (
    Authorizer,
    AuthorizerAnswer,
    AuthorizerSubject,
    CachingDecider,
    Decider,
    Question,
)
from scanner.cel.program import Measurement, Program, compile
from scanner.cel.syntax.parser import LARGEST
from scanner.cel.types.type_system import BOOL, DYN, NULL, STRING, Type
from scanner.cel.values.extent import (
    BOUNDLESS,
    LARGEST_SIZE,
    NOTHING,
    SizeBound,
    bound_extent,
    count_entries,
    find_document_extent,
    find_widest,
    measure_document,
)
from scanner.cel.values.list_kinds import ListKind, ListKinds, record_lists_anew
from scanner.cel.values.values import (
    Duration,
    KeyedMap,
    Lazy,
    Message,
    Optional,
    Struct,
    Timestamp,
    UInt,
    Value,
    type_name,
)

__all__ = [
    "AUTHORIZATION",
    "BOOL",
    "BOUNDLESS",
    "DYN",
    "ELEMENTS",
    "JSON_PATCH",
    "LARGEST",
    "LARGEST_SIZE",
    "NOTHING",
    "NULL",
    "OBJECT",
    "PARAMS",
    "PATCH_LIST",
    "PER_CALL_LIMIT",
    "SHAPE",
    "STRING",
    "Authorizer",
    "AuthorizerAnswer",
    "AuthorizerSubject",
    "CachingDecider",
    "CompileError",
    "CostExceeded",
    "Decider",
    "DecidingPart",
    "DirectParts",
    "Duration",
    "Environment",
    "EvaluationError",
    "Explanation",
    "ExpressionTooLarge",
    "Flow",
    "KeyedMap",
    "Lazy",
    "ListKind",
    "ListKinds",
    "Measurement",
    "Message",
    "Optional",
    "OutlinePart",
    "Place",
    "Program",
    "Question",
    "SizeBound",
    "Struct",
    "Timestamp",
    "Type",
    "UInt",
    "Value",
    "WrapperDifference",
    "allow_patches",
    "bound_extent",
    "compile",
    "count_entries",
    "explain",
    "explain_directly",
    "find_direct_parts",
    "find_document_extent",
    "find_widest",
    "find_wrapper_differences",
    "follow_variables",
    "measure_document",
    "outline",
    "read_direct_parts",
    "record_lists_anew",
    "type_name",
]

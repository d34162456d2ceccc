"""A compiler for CEL as kube-apiserver 1.36 runs it; the package does not depend on policies.

`compile(text, environment)` returns a `Program`, `Program.evaluate(activation)` a value, `Program.measure(activation)` its cost
as well, and `Program.bound(extents)` the maximum of that cost. Compile errors and run-time errors carry the texts of
kube-apiserver, but for errors of syntax.
"""

from scanner.cel.analysis.deep_reads import ELEMENTS, SHAPE
from scanner.cel.analysis.flows import Flow, followed
from scanner.cel.analysis.wrapper_differences import Difference, wrapper_differences
from scanner.cel.checking.env import AUTHORIZATION, PARAMS, Environment
from scanner.cel.checking.patches import JSON_PATCH, OBJECT, PATCH_LIST, for_patches
from scanner.cel.cost.meter import PER_CALL_LIMIT
from scanner.cel.errors import CompileError, CostExceeded, EvaluationError, TooLarge
from scanner.cel.explanation.direct import DirectParts, direct_parts, direct_reasons, reasons_at
from scanner.cel.explanation.explained import Explanation, Reason
from scanner.cel.explanation.outline import Part, outline
from scanner.cel.explanation.places import Place
from scanner.cel.explanation.reasons import explain
from scanner.cel.functions.authorizer import Answer, Authorizer, Decider, Question, Remembering, Subject
from scanner.cel.program import Measured, Program, compile
from scanner.cel.syntax.parser import LARGEST
from scanner.cel.types.type_system import BOOL, DYN, NULL, STRING, Type
from scanner.cel.values.extent import (
    BOUNDLESS,
    LARGEST_SIZE,
    NOTHING,
    SizeBound,
    entries_at,
    extent_of_document,
    extent_of_size,
    size_of_document,
    widest_of,
)
from scanner.cel.values.list_kinds import ListKind, ListKinds, recording_lists
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
    "Answer",
    "Authorizer",
    "CompileError",
    "CostExceeded",
    "Decider",
    "Difference",
    "DirectParts",
    "Duration",
    "Environment",
    "EvaluationError",
    "Explanation",
    "Flow",
    "KeyedMap",
    "Lazy",
    "ListKind",
    "ListKinds",
    "Measured",
    "Message",
    "Optional",
    "Part",
    "Place",
    "Program",
    "Question",
    "Reason",
    "Remembering",
    "SizeBound",
    "Struct",
    "Subject",
    "Timestamp",
    "TooLarge",
    "Type",
    "UInt",
    "Value",
    "compile",
    "direct_parts",
    "direct_reasons",
    "entries_at",
    "explain",
    "extent_of_document",
    "extent_of_size",
    "followed",
    "for_patches",
    "outline",
    "reasons_at",
    "recording_lists",
    "size_of_document",
    "type_name",
    "widest_of",
    "wrapper_differences",
]

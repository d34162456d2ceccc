"""A compiler for CEL as kube-apiserver 1.36 runs it; it has never heard of policies.

`compile(text, environment)` gives a `Program`, `Program.evaluate(activation)` a value, `Program.measure(activation)` its cost as
well, and `Program.bound(extents)` what that can be at most. Refusals and run-time errors carry the texts of kube-apiserver.
"""

from scanner.cel.cost import PER_CALL_LIMIT
from scanner.cel.depths import ELEMENTS, SHAPE
from scanner.cel.env import AUTHORIZATION, PARAMS, Environment
from scanner.cel.errors import CompileError, CostExceeded, EvaluationError, TooLarge
from scanner.cel.extent import (
    BOUNDLESS,
    LARGEST_SIZE,
    NOTHING,
    Extent,
    entries_at,
    extent_of_document,
    extent_of_size,
    size_of_document,
    widest_of,
)
from scanner.cel.flows import Flow, followed
from scanner.cel.functions.authorizer import Answer, Authorizer, Decider, Question, Remembering, Subject
from scanner.cel.made import Making, Notes, noting
from scanner.cel.parser import LARGEST
from scanner.cel.patches import JSON_PATCH, OBJECT, PATCH_LIST, for_patches
from scanner.cel.places import Place
from scanner.cel.program import Measured, Program, compile
from scanner.cel.reasons import Explanation, Reason
from scanner.cel.type_system import BOOL, DYN, NULL, STRING, Type
from scanner.cel.values import Duration, KeyedMap, Lazy, Message, Optional, Struct, Timestamp, UInt, Value, type_name
from scanner.cel.wrapped import Told, telling

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
    "Duration",
    "Environment",
    "EvaluationError",
    "Explanation",
    "Extent",
    "Flow",
    "KeyedMap",
    "Lazy",
    "Making",
    "Measured",
    "Message",
    "Notes",
    "Optional",
    "Place",
    "Program",
    "Question",
    "Reason",
    "Remembering",
    "Struct",
    "Subject",
    "Timestamp",
    "Told",
    "TooLarge",
    "Type",
    "UInt",
    "Value",
    "compile",
    "entries_at",
    "extent_of_document",
    "extent_of_size",
    "followed",
    "for_patches",
    "noting",
    "size_of_document",
    "telling",
    "type_name",
    "widest_of",
]

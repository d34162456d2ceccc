"""A compiler for CEL as kube-apiserver 1.36 runs it; it has never heard of policies.

`compile(text, environment)` gives a `Program`, `Program.evaluate(activation)` a value. Refusals and run-time errors carry the
texts of kube-apiserver.
"""

from scanner.cel.env import AUTHORIZATION, PARAMS, Environment
from scanner.cel.errors import CompileError, CostExceeded, EvaluationError
from scanner.cel.functions.authorizer import Answer, Authorizer, Decider, Question, Remembering, Subject
from scanner.cel.patches import JSON_PATCH, OBJECT, PATCH_LIST, for_patches
from scanner.cel.program import Program, compile
from scanner.cel.type_system import BOOL, DYN, NULL, STRING, Type
from scanner.cel.values import Duration, KeyedMap, Lazy, Optional, Struct, Timestamp, UInt, Value, type_name

__all__ = [
    "AUTHORIZATION",
    "BOOL",
    "DYN",
    "JSON_PATCH",
    "NULL",
    "OBJECT",
    "PARAMS",
    "PATCH_LIST",
    "STRING",
    "Answer",
    "Authorizer",
    "CompileError",
    "CostExceeded",
    "Decider",
    "Duration",
    "Environment",
    "EvaluationError",
    "KeyedMap",
    "Lazy",
    "Optional",
    "Program",
    "Question",
    "Remembering",
    "Struct",
    "Subject",
    "Timestamp",
    "Type",
    "UInt",
    "Value",
    "compile",
    "for_patches",
    "type_name",
]

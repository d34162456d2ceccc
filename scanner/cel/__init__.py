"""A compiler for CEL as kube-apiserver 1.36 runs it; it has never heard of policies.

`compile(text, environment)` gives a `Program`, `Program.evaluate(activation)` a value. Refusals and run-time errors carry the
texts of kube-apiserver.
"""

from scanner.cel.env import AUTHORIZATION, PARAMS, Environment
from scanner.cel.errors import CompileError, CostExceeded, EvaluationError
from scanner.cel.functions.authorizer import Answer, Authorizer, Decider, Question, Remembering, Subject
from scanner.cel.program import Program, compile
from scanner.cel.runtime import Lazy
from scanner.cel.type_system import BOOL, DYN, NULL, STRING, Type
from scanner.cel.values import Value, type_name

__all__ = [
    "AUTHORIZATION",
    "BOOL",
    "DYN",
    "NULL",
    "PARAMS",
    "STRING",
    "Answer",
    "Authorizer",
    "CompileError",
    "CostExceeded",
    "Decider",
    "Environment",
    "EvaluationError",
    "Lazy",
    "Program",
    "Question",
    "Remembering",
    "Subject",
    "Type",
    "Value",
    "compile",
    "type_name",
]

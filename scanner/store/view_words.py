"""SQL that SQLite and PostgreSQL write differently, for `view_queries`: both give the same text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sqlalchemy import String
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class Word(FunctionElement[str]):
    """A text of some arguments, with the SQL of each database; `{0}` stands for the first argument."""

    inherit_cache = True
    type = String()
    sql: ClassVar[Mapping[str, str]]


@compiles(Word)
def _compile(word: Word, compiler: SQLCompiler, **options: Any) -> str:
    arguments = [compiler.process(argument, **options) for argument in word.clauses]
    return word.sql[compiler.dialect.name].format(*arguments)


class Moment(Word):
    """A time in UTC, without fractions of a second: `2026-03-31T06:05:00Z`."""

    inherit_cache = True
    sql: ClassVar = {
        "sqlite": "(substr({0}, 1, 10) || 'T' || substr({0}, 12, 8) || 'Z')",
        "postgresql": """to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')""",
    }


class Digits(Word):
    """Bytes in hexadecimal digits, in small letters."""

    inherit_cache = True
    sql: ClassVar = {"sqlite": "lower(hex({0}))", "postgresql": "encode({0}, 'hex')"}


class ProblemId(Word):
    """The id of a problem, by its number: see `posture.problems.problem_id`."""

    inherit_cache = True
    sql: ClassVar = {
        "sqlite": "('p-' || printf('%012x', {0}))",
        "postgresql": "('p-' || lpad(to_hex({0}), 12, '0'))",
    }


class Character(Word):
    """The character with a number."""

    inherit_cache = True
    sql: ClassVar = {"sqlite": "char({0})", "postgresql": "chr({0})"}

"""Reads the parameters of a request, and refuses unknown names and invalid values with what is valid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, TypeVar

import msgspec
from starlette.requests import Request

from scanner.model.json import JsonObject, as_list, as_object
from scanner.model.nearest import did_you_mean
from scanner.web.api.queries import Query
from scanner.web.refusals import BadRequest, NotThere, TooLong

LONGEST: Final = 4_096
"""The longest query of an address, in bytes."""
PATH_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "cluster": ("^[A-Za-z0-9_-]{1,60}\\.[0-9a-f]{8}$", "The key of a cluster, as `/clusters` lists it."),
    "problem": ("^p-[0-9a-f]{12}$", "The id of a problem."),
    "run": ("^[1-9][0-9]{0,8}$", "The number of a run."),
}
"""The pattern and the meaning of each variable part of a path."""
_CONTROL: Final = re.compile("[\x00-\x1f\x7f]")
_WHERE: Final = re.compile(r" - at `\$\.?([A-Za-z]*)[^`]*`$")
_SHOWN: Final = 80

QueryT = TypeVar("QueryT", bound=Query)


def query_of(request: Request, kind: type[QueryT]) -> QueryT:
    """The parameters of a request. Raises BadRequest, and TooLong."""
    if len(request.scope.get("query_string", b"")) > LONGEST:
        raise TooLong(f"The query of an address has at most {LONGEST:,} bytes.")
    known = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    given: dict[str, str | list[str]] = {}
    for name in request.query_params:
        if name not in known:
            raise BadRequest(f"There is no parameter {name[:_SHOWN]!r}.{_parameters(name, known)}")
        values = request.query_params.getlist(name)
        if any(map(_CONTROL.search, values)):
            raise BadRequest(f"{name}: the value has a control character.")
        is_list = isinstance(known[name].default, tuple)
        if len(values) > 1 and not is_list:
            raise BadRequest(f"{name}: give one value.")
        given[name] = values if is_list else values[0]
    if given.get("scan") and given.get("at"):
        raise BadRequest("Give scan or at: each names a scan.")
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequest(_message(str(error), kind)) from error


def _parameters(name: str, known: Mapping[str, object]) -> str:
    """The nearest parameter, or all."""
    return did_you_mean(name, known) or (f" The parameters are: {', '.join(known)}." if known else "")


def _message(text: str, kind: type[Query]) -> str:
    """The message of an invalid value: the name of its parameter, and the rule that it breaks."""
    where = _WHERE.search(text)
    if where is None:
        return text
    rule = as_object(fields_of(kind)[where[1]])
    values = [str(value) for value in as_list(rule.get("enum")) if value]
    expected = f"give one of {', '.join(values)}" if values else text[: where.start()].replace("`", "")
    return f"{where[1]}: {expected}."


@cache
def fields_of(kind: type[Query]) -> JsonObject:
    """The schemas of the parameters of a record, by name."""
    _, named = msgspec.json.schema_components([kind])
    return as_object(as_object(named[kind.__name__])["properties"])


def path_of(request: Request) -> Mapping[str, str]:
    """The variable parts of a path. Raises NotThere for one that no address can have."""
    parts = {name: str(value) for name, value in request.path_params.items()}
    for name, value in parts.items():
        if not re.fullmatch(PATH_PARTS[name][0].strip("^$"), value):
            raise NotThere(f"{value[:_SHOWN]!r} names no {name}. {PATH_PARTS[name][1]}")
    return parts

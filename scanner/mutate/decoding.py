"""The decoding of a mutated object: the API server converts it to its Go type and writes it as JSON again.

Source of truth: the strict JSON serializer of apimachinery, which reads the result of a JSON patch, with sigs.k8s.io/json, and
`FromUnstructured` of apimachinery, which reads that of an apply configuration. Custom resources have no Go type (`custom`).
"""

from __future__ import annotations

from scanner.cel.values.text import quote
from scanner.model.json import EMPTY, Json, JsonObject, as_text
from scanner.model.resource import Kind
from scanner.mutate import goread
from scanner.mutate.goread import BadBytes, MalformedText, Mismatch, name_type
from scanner.mutate.gotypes import GoPlain, Special, is_known
from scanner.mutate.native import PatchFault, RequestFault
from scanner.mutate.rewriting import FieldPlace, Order, Reader, Rewriting, keep_order, order_by_field, order_by_name
from scanner.mutate.schema import Schema

INTERNAL = "Internal error occurred: "
_UNIDENTIFIED = "couldn't get version/kind; json parse error: json: cannot unmarshal"
_IDENTITY = ("apiVersion", "kind")
_IDENTITY_TYPE = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
# The source file that made the scheme, as error texts of a server that is built from Go modules name it.
_SCHEME = "pkg/runtime/scheme.go:111"
_MOST_UNKNOWN = 100


def decode_strictly(schema: Schema, document: Json, live: JsonObject) -> JsonObject:
    """The decoded result of a JSON patch on `live`, its kind filled in.

    Raises RequestFault with the first error of the strict decoder.
    """
    identified = _fill_identity({} if document is None else document, live)
    decoded, fault = _decode(schema, identified, live, keep_order)
    if not fault:
        return decoded
    # The error that Go reports depends on the order of reading: members that a patch wrote are sorted.
    raise RequestFault(f"{INTERNAL}{_decode(schema, identified, live, order_by_name)[1]}")


def _decode(schema: Schema, document: JsonObject, live: JsonObject, order: Order) -> tuple[JsonObject, str]:
    """The decoded object, or the error text of the strict decoder."""
    reader = _StrictDecoder()
    try:
        return Rewriting(schema, reader, order).rewrite(document, live), reader.fault()
    except DecoderEnded as error:
        return EMPTY, str(error)


def decode_configuration(
    schema: Schema, document: JsonObject, live: JsonObject, *, created: bool = False
) -> JsonObject:
    """The decoded result of an apply configuration on `live` (`FromUnstructured`). Raises PatchFault.

    A `created` object has all fields that Go always writes; `live` is its identity.
    """
    try:
        return Rewriting(schema, UnstructuredDecoder()).rewrite(document, None if created else live)
    except DecoderEnded:
        raise PatchFault(_find_unconvertible(schema, document, live)) from None


def _find_unconvertible(schema: Schema, document: JsonObject, live: JsonObject) -> str:
    """The error of the first invalid field, in the order of the structs."""
    version = as_text(live.get("apiVersion"))
    kind_text = f"{version if '/' in version else f'/{version}'}, Kind={as_text(live.get('kind'))}"
    try:
        Rewriting(schema, UnstructuredDecoder(), order_by_field).rewrite(document, live)
    except DecoderEnded as error:
        return f"unable to convert unstructured object to {kind_text}: {error}"
    return ""


def require_identity(document: Json) -> JsonObject:
    """A document whose kind and version can be read, if it has any. Raises RequestFault for any other document (`Interpret`)."""
    if not isinstance(document, dict):
        raise RequestFault(f"{INTERNAL}{_UNIDENTIFIED} {name_type(document)} into Go value of type {_IDENTITY_TYPE}")
    for name in _IDENTITY:
        if not isinstance(document.get(name), str | None):
            wrong = name_type(document[name])
            raise RequestFault(f"{INTERNAL}{_UNIDENTIFIED} {wrong} into Go struct field .{name} of type string")
    version = as_text(document.get("apiVersion"))
    if version.count("/") > 1:
        raise RequestFault(f"{INTERNAL}unexpected GroupVersion string: {version}")
    return document


def _fill_identity(document: Json, live: JsonObject) -> JsonObject:
    """The document with the stored object's kind, which it may omit. Raises RequestFault for another kind."""
    document = require_identity(document)
    version, kind = as_text(document.get("apiVersion")), as_text(document.get("kind"))
    own_version, own_kind = as_text(live.get("apiVersion")), as_text(live.get("kind"))
    version = own_version if version in ("", "/") else version
    kind = kind or own_kind
    if (version, kind) != (own_version, own_kind):
        raise RequestFault(f"{INTERNAL}{_describe_other_kind(version, kind, own_version, own_kind)}")
    return {**document, **{name: live[name] for name in _IDENTITY if name in live}}


def _describe_other_kind(version: str, kind: str, own_version: str, own_kind: str) -> str:
    """The error text for an object that the patch turned into another kind."""
    group, _, short = version.rpartition("/")
    package = group.partition(".")[0] or "core"
    if is_known(f"io.k8s.api.{package}.{short}.{kind}"):
        theirs, ours = f"{short}.{kind}", f"{own_version.rpartition('/')[2]}.{own_kind}"
        return f"failed to convert object: converting ({theirs}) to ({ours}): unknown conversion"
    return f"no kind {quote(kind)} is registered for version {quote(version)} in scheme {quote(_SCHEME)}"


def explain_unreturnable(original: Kind, matched: Kind) -> str:
    """The error for a mutated object of a built-in kind in another version than the request's; empty for the same version.

    Mirrors `dispatchOne`: it converts from version to version, while every conversion of a built-in kind is to or from its
    internal type. So no mutation of such an object is ever applied.
    """
    if original.api_version == matched.api_version:
        return ""
    theirs, ours = f"{matched.version}.{matched.kind}", f"{original.version}.{original.kind}"
    if original.group == matched.group:
        return f"converting ({theirs}) to ({ours}): unknown conversion"
    return f"{theirs} is not suitable for converting to {quote(original.api_version)} in scheme {quote(_SCHEME)}"


class DecoderEnded(ValueError):
    """The error at which a decoder stops immediately."""


class _StrictDecoder:
    """The decoder of sigs.k8s.io/json: it reports the first value of a wrong type before unknown fields.

    A type with its own decoder ends the decoding with its own error.
    """

    def __init__(self) -> None:
        self.first = ""
        self.unsuitable: dict[str, None] = {}

    def fault(self) -> str:
        """The error text of the decoder, empty when there is none."""
        if self.first or not self.unsuitable:
            return self.first
        return f"strict decoding error: {', '.join([*self.unsuitable][:_MOST_UNKNOWN])}"

    def read_plain(self, go: GoPlain, value: Json, place: FieldPlace) -> Json:
        try:
            return goread.read_plain(go.kind, go.name, value)
        except Mismatch as error:
            self._save(_describe_in_field(error, place))
            return None

    def read_bytes(self, value: Json, place: FieldPlace) -> Json:
        if isinstance(value, list):
            return self._read_byte_list(value, place)
        if not isinstance(value, str):
            self.reject_misplaced(value, "slice", "[]uint8", place)
            return None
        try:
            return goread.normalize_bytes(value)
        except BadBytes as error:
            self._save(str(error))
            return None

    def _read_byte_list(self, value: list[Json], place: FieldPlace) -> Json:
        # Go leaves its zero in the place of a null.
        numbers = [self.read_plain(_BYTE, 0 if item is None else item, place) for item in value]
        return goread.encode_numbers([number for number in numbers if isinstance(number, int)])

    def read_special(self, kind: Special, value: Json, place: FieldPlace) -> Json:
        try:
            return goread.read_special(kind, value)
        except Mismatch as error:
            text = _describe_in_field(error, place)
        except MalformedText as error:
            text = str(error)
        self._save(text)
        raise DecoderEnded(text)

    def reject_misplaced(self, value: Json, expected: str, type_: str, place: FieldPlace) -> None:
        del expected
        self._save(_describe_in_field(Mismatch(name_type(value), type_), place))

    def report_unknown(self, place: FieldPlace, name: str) -> None:
        path = f"{place.path}.{name}" if place.path else name
        self.unsuitable[f"unknown field {quote(path)}"] = None

    def enter(self, place: FieldPlace) -> tuple[Reader, FieldPlace]:
        return InnerDecoder(), place

    def _save(self, text: str) -> None:
        self.first = self.first or text


class InnerDecoder(_StrictDecoder):
    """The strict decoder inside a type with its own decoder: the first error ends it, and unknown members are dropped."""

    def report_unknown(self, place: FieldPlace, name: str) -> None:
        """Ignore an unknown member."""

    def _save(self, text: str) -> None:
        raise DecoderEnded(text)


_BYTE = GoPlain("uint8", "uint8")


def _describe_in_field(error: Mismatch, place: FieldPlace) -> str:
    if not place.fields:
        return str(error)
    where = f"{place.struct}.{'.'.join(place.fields)}"
    return f"json: cannot unmarshal {error.word} into Go struct field {where} of type {error.type}"


class UnstructuredDecoder:
    """The decoder `FromUnstructured`, which stops at the first error and does not report the path of the field."""

    def read_plain(self, go: GoPlain, value: Json, place: FieldPlace) -> Json:
        """Read a plain value; a number of another width loses its upper bits."""
        del place
        if go.kind in ("int32", "int64") and isinstance(value, int | float) and not isinstance(value, bool):
            wrapped = goread.wrap_integer(go.kind, value)
            if wrapped is None:
                raise DecoderEnded(f"cannot convert float64 to {go.name}")
            return wrapped
        try:
            return goread.read_plain(go.kind, go.name, value)
        except Mismatch:
            is_integer = isinstance(value, int) and not isinstance(value, bool)
            text = f"cannot convert int64 to {go.name}" if is_integer else f"unrecognized type: {go.kind}"
            raise DecoderEnded(text) from None

    def read_bytes(self, value: Json, place: FieldPlace) -> Json:
        """Read bytes from their base64, as base64 again."""
        if not isinstance(value, str):
            self.reject_misplaced(value, "slice", "[]uint8", place)
            return None
        try:
            return goread.normalize_bytes(value)
        except BadBytes as error:
            raise DecoderEnded(f"error decoding from json: {error}") from None

    def read_special(self, kind: Special, value: Json, place: FieldPlace) -> Json:
        """Read a value of a type with its own decoder."""
        del place
        try:
            return goread.read_special(kind, value)
        except (Mismatch, MalformedText) as error:
            raise DecoderEnded(str(error)) from None

    def reject_misplaced(self, value: Json, expected: str, type_: str, place: FieldPlace) -> None:
        """Reject a value of another shape."""
        del type_, place
        raise DecoderEnded(
            f"cannot restore {expected} from{':' if expected == 'struct' else ''} {_KINDS[name_type(value)]}"
        )

    def report_unknown(self, place: FieldPlace, name: str) -> None:
        """Ignore an unknown member: a patch cannot contain a field that the schema does not define."""

    def enter(self, place: FieldPlace) -> tuple[Reader, FieldPlace]:
        """The reader of the content, which is decoded as separate JSON."""
        del place
        return InnerDecoder(), FieldPlace()


_KINDS = {"bool": "bool", "number": "int64", "string": "string", "array": "slice", "object": "map", "null": "nil"}

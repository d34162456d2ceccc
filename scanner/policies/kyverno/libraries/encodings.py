"""Texts and bytes in other forms: base64, gzip and digests.

Mirrors cel-go's encoders extension and Kyverno's hash and gzip libraries. Compression is Kyverno's in content, not byte for
byte: another compressor may write other bytes for the same text.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import zlib
from collections.abc import Callable

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.functions.pricing import ONE
from scanner.cel.types.type_system import BYTES, DYN, STRING
from scanner.cel.values.values import Value

_BLOCK = 4
_FOREIGN = re.compile(r"[^A-Za-z0-9+/]")
_LINE_ENDS = str.maketrans("", "", "\r\n")


def _decode(encoded: str) -> Value:
    """Decode the standard alphabet, with its padding or without."""
    plain = encoded.translate(_LINE_ENDS)
    body = plain.rstrip("=")
    padding = len(plain) - len(body)
    foreign = _FOREIGN.search(body)
    if foreign:
        raise EvaluationError(f"illegal base64 data at input byte {foreign.start()}")
    if len(body) % _BLOCK == 1 or (padding and (len(body) + padding) % _BLOCK):
        raise EvaluationError(f"illegal base64 data at input byte {len(body)}")
    return base64.b64decode(body + "=" * (-len(body) % _BLOCK))


def _compress(content: str) -> Value:
    return gzip.compress(content.encode("utf-8", "replace"), mtime=0)


def _decompress(packed: bytes) -> Value:
    try:
        return gzip.decompress(packed).decode(errors="replace")
    except EOFError:
        raise EvaluationError("unexpected EOF") from None
    except (OSError, zlib.error):
        raise EvaluationError("gzip: invalid header") from None


def _digests(name: str) -> tuple[Function, Function]:
    def run(content: str) -> Value:
        return hashlib.new(name, content.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()

    return _function(name, name, run), _function(f"hash.{name}", name, run)


def _function(full_name: str, name: str, run: Callable[[str], Value]) -> Function:
    return Function(full_name, (Overload(f"{name}_string", (STRING,), STRING, run),), cost=ONE)


LIBRARY = Library(
    "kyverno.encodings",
    (
        Function(
            "base64.encode",
            (Overload("base64_encode_bytes", (BYTES,), STRING, lambda raw: base64.b64encode(raw).decode()),),
            cost=ONE,
        ),
        Function("base64.decode", (Overload("base64_decode_string", (STRING,), BYTES, _decode),), cost=ONE),
        Function("gzip.compress", (Overload("gzip_compress_string", (STRING,), DYN, _compress),), cost=ONE),
        Function("gzip.decompress", (Overload("gzip_decompress_bytes", (BYTES,), STRING, _decompress),), cost=ONE),
        *_digests("md5"),
        *_digests("sha1"),
        *_digests("sha256"),
    ),
)

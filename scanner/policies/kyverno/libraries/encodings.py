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
from scanner.cel.values.values import Value
from scanner.policies.kyverno.libraries.declared import Implementation
from scanner.policies.kyverno.libraries.natives import as_string

_BLOCK = 4
_HEADER = 10
_MAGIC = b"\x1f\x8b\x08"
_CORRUPT = "flate: corrupt input before offset 0"
_FOREIGN = re.compile(r"[^A-Za-z0-9+/\r\n]")
_PADDED = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_LINE_ENDS = str.maketrans("", "", "\r\n")


def _decode(encoded: str) -> Value:
    """Decode the standard alphabet, with its padding or without; errors are those of the decoder without padding."""
    plain = encoded.translate(_LINE_ENDS)
    if len(plain) % _BLOCK == 0 and _PADDED.fullmatch(plain):
        return base64.b64decode(plain)
    foreign = _FOREIGN.search(encoded)
    if foreign:
        raise EvaluationError(f"illegal base64 data at input byte {len(encoded[: foreign.start()].encode())}")
    if len(plain) % _BLOCK == 1:
        raise EvaluationError(f"illegal base64 data at input byte {len(encoded) - 1}")
    return base64.b64decode(plain + "=" * (-len(plain) % _BLOCK))


def _compress(content: Value) -> Value:
    return gzip.compress(as_string(content).encode("utf-8", "replace"), mtime=0)


def _decompress(packed: bytes) -> Value:
    """Return the text of all members of a gzip stream. Raises EvaluationError with Go's text."""
    parts: list[bytes] = []
    rest = packed
    while rest or not parts:
        member, rest = _member(rest)
        parts.append(member)
    return b"".join(parts).decode(errors="replace")


def _member(packed: bytes) -> tuple[bytes, bytes]:
    """Return the content of the first member, and what comes behind it."""
    if not packed:
        raise EvaluationError("EOF")
    if len(packed) < _HEADER:
        raise EvaluationError("unexpected EOF")
    if not packed.startswith(_MAGIC):
        raise EvaluationError("gzip: invalid header")
    inflating = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        content = inflating.decompress(packed)
    except zlib.error as error:
        wrong = "data check" in str(error) or "length check" in str(error)
        raise EvaluationError("gzip: invalid checksum" if wrong else _CORRUPT) from None
    if not inflating.eof:
        raise EvaluationError("unexpected EOF")
    return content, inflating.unused_data


def _digest(name: str) -> Callable[[str], Value]:
    def run(content: str) -> Value:
        return hashlib.new(name, content.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()

    return run


IMPLEMENTATION = Implementation(
    {
        "base64_encode_bytes": lambda raw: base64.b64encode(raw).decode(),
        "base64_decode_string": _decode,
        "compress_any_bytes": _compress,
        "decompress_bytes_string": _decompress,
        "md5_string": _digest("md5"),
        "sha1_string": _digest("sha1"),
        "sha256_string": _digest("sha256"),
    }
)

"""`x509.decode`: a certificate or a request for one, in the form of a map as Go's JSON writes it.

Mirrors Kyverno's x509 library: keys are Go's field names, bytes are base64, every number is a double, an empty list is null, and
only RSA keys are accepted. Signatures are not checked, and no request is sent.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from scanner.cel.errors import EvaluationError
from scanner.cel.functions import url
from scanner.cel.values.values import INT_MIN, UINT_MAX, Value
from scanner.der import Element, Malformed, Tag, only
from scanner.policies.kyverno.libraries.declared import Implementation
from scanner.policies.kyverno.libraries.documents import url_fields

_PEM = re.compile(
    r"^-----BEGIN ([^\n]*?)-----[ \t\r]*\n((?:[^\n:]*:[^\n]*\n)*)(.*?)^-----END \1-----[ \t\r]*$",
    re.DOTALL | re.MULTILINE,
)
"""A block: its type, its headers, and its content in base64."""
_RSA = (1, 2, 840, 113549, 1, 1, 1)
_RSA_NUMBER = 1.0
_SIGNATURES: dict[tuple[int, ...], float] = {
    (1, 2, 840, 113549, 1, 1, 4): 2.0,
    (1, 2, 840, 113549, 1, 1, 5): 3.0,
    (1, 2, 840, 113549, 1, 1, 11): 4.0,
    (1, 2, 840, 113549, 1, 1, 12): 5.0,
    (1, 2, 840, 113549, 1, 1, 13): 6.0,
}
"""Go's numbers of the signature algorithms of RSA keys."""
_EXTENSION_REQUEST = (1, 2, 840, 113549, 1, 9, 14)
_NAMES = {
    (2, 5, 4, 6): "Country",
    (2, 5, 4, 10): "Organization",
    (2, 5, 4, 11): "OrganizationalUnit",
    (2, 5, 4, 7): "Locality",
    (2, 5, 4, 8): "Province",
    (2, 5, 4, 9): "StreetAddress",
    (2, 5, 4, 17): "PostalCode",
}
_COMMON_NAME, _SERIAL_NUMBER = (2, 5, 4, 3), (2, 5, 4, 5)
_NAME_CONSTRAINTS = (2, 5, 29, 30)
_USES = (1, 3, 6, 1, 5, 5, 7, 3)
_ANY_USE = (2, 5, 29, 37, 0)
_OCSP, _ISSUERS = (1, 3, 6, 1, 5, 5, 7, 48, 1), (1, 3, 6, 1, 5, 5, 7, 48, 2)
_EMAIL, _DNS, _URI, _ADDRESS = 1, 2, 6, 7

Fields = dict[str, Value]
Extensions = Mapping[tuple[int, ...], Element]


def _decode(pem: str) -> Value:
    match = _PEM.search(pem)
    if match is None:
        raise EvaluationError("failed to decode PEM block")
    kind = match.group(1)
    if kind not in ("CERTIFICATE", "CERTIFICATE REQUEST"):
        raise EvaluationError("PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST")
    return dict(_fields(kind, match.group(3)))


@lru_cache(maxsize=256)
def _fields(kind: str, body: str) -> Fields:
    try:
        whole = only(base64.b64decode("".join(body.split()), validate=True))
        return _certificate(whole) if kind == "CERTIFICATE" else _request(whole)
    except binascii.Error:
        raise EvaluationError("failed to decode PEM block") from None
    except (Malformed, ValueError, IndexError, RecursionError) as error:
        raise EvaluationError(f"x509: malformed certificate: {error}") from None


def _certificate(whole: Element) -> Fields:
    body, _, signature = whole.children()
    parts = [part for part in body.children() if not part.context(0)]
    serial, _, issuer, validity, subject, key = parts[:6]
    extensions = _extensions(next((part.children()[0] for part in parts[6:] if part.context(3)), None))
    values = {id_: only(value) for id_, (_, value) in extensions.items() if _is_der(value)}
    start, end = validity.children()
    return {
        "Raw": _text(whole.raw),
        "RawTBSCertificate": _text(body.raw),
        "RawSubjectPublicKeyInfo": _text(key.raw),
        "RawSubject": _text(subject.raw),
        "RawIssuer": _text(issuer.raw),
        "Signature": _text(signature.bits()),
        **_key(key),
        "SerialNumber": float(_low_bits(serial.integer())),
        "Issuer": _name(issuer),
        "NotBefore": start.moment(),
        "NotAfter": end.moment(),
        "Extensions": _listed(extensions),
        "ExtraExtensions": None,
        **_uses(values),
        **_constraints(values),
        "PermittedDNSDomainsCritical": extensions.get(_NAME_CONSTRAINTS, (False, b""))[0],
        **_places(values),
        **_alternatives(values),
    }


def _request(whole: Element) -> Fields:
    body, algorithm, signature = whole.children()
    version, subject, key, *sets = body.children()
    attributes = [attribute for part in sets for attribute in part.children()]
    request = next(filter(None, map(_requested_extensions, attributes)), None)
    extensions = _extensions(request)
    values = {id_: only(value) for id_, (_, value) in extensions.items() if _is_der(value)}
    return {
        "Raw": _text(whole.raw),
        "RawTBSCertificateRequest": _text(body.raw),
        "RawSubjectPublicKeyInfo": _text(key.raw),
        "RawSubject": _text(subject.raw),
        "Version": float(version.integer()),
        "Signature": _text(signature.bits()),
        "SignatureAlgorithm": _SIGNATURES.get(algorithm.children()[0].object_id(), 0.0),
        **_key(key),
        "Subject": _name(subject),
        "Attributes": _or_null(filter(None, map(_attribute, attributes))),
        "Extensions": _listed(extensions),
        "ExtraExtensions": None,
        **_alternatives(values),
        "URIs": _or_null(map(_link, _named(values, _URI))),
    }


def _attribute(attribute: Element) -> Value:
    """The attribute of a request as Go's type and set of types and values; None if the attribute has another form."""
    name, values = attribute.children()
    try:
        pairs = [[pair.children()[:2] for pair in part.children()] for part in values.children()]
        return {
            "Type": _id(name),
            "Value": [[{"Type": _id(id_), "Value": _plain(value)} for id_, value in part] for part in pairs],
        }
    except (Malformed, ValueError):
        return None


def _plain(value: Element) -> Value:
    """The value of an element in Go's JSON: texts, numbers, and bytes in base64."""
    match value.tag:
        case Tag.BOOLEAN:
            return value.content != b"\0"
        case Tag.INTEGER:
            return float(value.integer())
        case Tag.OCTET_STRING:
            return _text(value.content)
        case Tag.OBJECT_ID:
            return _id(value)
        case _:
            return value.text()


def _link(text: str) -> Value:
    """A URI as Go's JSON of its parts."""
    return dict(url_fields(url.parse(text)))


def _low_bits(number: int) -> int:
    """The low 64 bits of a number with its sign, as Go's `big.Int.Int64` returns them."""
    low = abs(number) & UINT_MAX
    signed = low - (1 << 64) if low >> 63 else low
    return signed if number >= 0 or signed == INT_MIN else -signed


def _requested_extensions(attribute: Element) -> Element | None:
    """The extensions that a certificate request contains."""
    name, values = attribute.children()
    return values.children()[0] if name.object_id() == _EXTENSION_REQUEST else None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _id(element: Element) -> list[Value]:
    return [float(number) for number in element.object_id()]


def _or_null(values: Iterable[Value]) -> Value:
    """The list, or null if it is empty."""
    return list(values) or None


def _key(key: Element) -> Fields:
    algorithm, bits = key.children()
    if algorithm.children()[0].object_id() != _RSA:
        raise EvaluationError("certificate should use rsa algorithm")
    try:
        modulus, exponent = only(bits.bits()).children()
    except (Malformed, ValueError):
        raise EvaluationError("failed to parse subject public key info") from None
    numbers = {"N": str(modulus.integer()), "E": float(exponent.integer())}
    return {"PublicKeyAlgorithm": _RSA_NUMBER, "PublicKey": numbers}


def _name(name: Element) -> Fields:
    pairs = [pair.children() for part in name.children() for pair in part.children()]
    attributes = [(type_.object_id(), value.text()) for type_, value in pairs]
    lists: Fields = {field: _or_null(text for id_, text in attributes if id_ == key) for key, field in _NAMES.items()}
    single = dict(attributes)
    names = [{"Type": [float(number) for number in id_], "Value": text} for id_, text in attributes]
    last = {"SerialNumber": single.get(_SERIAL_NUMBER, ""), "CommonName": single.get(_COMMON_NAME, "")}
    return {**lists, **last, "Names": _or_null(names), "ExtraNames": None}


def _extensions(extensions: Element | None) -> dict[tuple[int, ...], tuple[bool, bytes]]:
    """The criticality of each extension, and its value."""
    by_id: dict[tuple[int, ...], tuple[bool, bytes]] = {}
    for extension in extensions.children() if extensions else ():
        id_, *flags, value = extension.children()
        by_id[id_.object_id()] = (bool(flags and flags[0].content != b"\0"), value.content)
    return by_id


def _is_der(value: bytes) -> bool:
    try:
        only(value)
    except Malformed:
        return False
    return True


def _listed(extensions: Mapping[tuple[int, ...], tuple[bool, bytes]]) -> Value:
    return _or_null(
        {"Id": [float(number) for number in id_], "Critical": critical, "Value": _text(value)}
        for id_, (critical, value) in extensions.items()
    )


def _uses(extensions: Extensions) -> Fields:
    usage, purposes = extensions.get((2, 5, 29, 15)), extensions.get((2, 5, 29, 37))
    bits = "".join(f"{byte:08b}" for byte in usage.bits()) if usage else ""
    ids = [element.object_id() for element in purposes.children()] if purposes else []
    numbers = [0.0 if id_ == _ANY_USE else float(id_[-1]) for id_ in ids if id_ == _ANY_USE or id_[:-1] == _USES]
    return {
        "KeyUsage": float(sum(1 << place for place, bit in enumerate(bits) if bit == "1")),
        "ExtKeyUsage": _or_null(numbers),
    }


def _constraints(extensions: Extensions) -> Fields:
    basic = extensions.get((2, 5, 29, 19))
    parts = basic.children() if basic else ()
    length = next((part.integer() for part in parts if part.tag == Tag.INTEGER), -1 if basic else 0)
    return {
        "BasicConstraintsValid": basic is not None,
        "IsCA": any(part.tag == Tag.BOOLEAN and part.content != b"\0" for part in parts),
        "MaxPathLen": float(length),
        "MaxPathLenZero": basic is not None and length == 0,
        **_subtrees("Permitted", extensions, 0),
        **_subtrees("Excluded", extensions, 1),
    }


def _subtrees(prefix: str, extensions: Extensions, number: int) -> Fields:
    """The names that a certificate is valid for, or excludes."""
    constraints = extensions.get(_NAME_CONSTRAINTS)
    part = (
        next((subtree for subtree in constraints.children() if subtree.context(number)), None) if constraints else None
    )
    bases = [tree.children()[0] for tree in part.children()] if part else []
    ranges = [base.content for base in bases if base.context(_ADDRESS)]
    return {
        f"{prefix}DNSDomains": _or_null(base.text() for base in bases if base.context(_DNS)),
        f"{prefix}IPRanges": _or_null(map(_range, ranges)),
        f"{prefix}EmailAddresses": _or_null(base.text() for base in bases if base.context(_EMAIL)),
        f"{prefix}URIDomains": _or_null(base.text() for base in bases if base.context(_URI)),
    }


def _range(data: bytes) -> Value:
    half = len(data) // 2
    return {"IP": str(ipaddress.ip_address(data[:half])), "Mask": _text(data[half:])}


def _places(extensions: Extensions) -> Fields:
    authority, access = extensions.get((2, 5, 29, 35)), extensions.get((1, 3, 6, 1, 5, 5, 7, 1, 1))
    lists, policies = extensions.get((2, 5, 29, 31)), extensions.get((2, 5, 29, 32))
    keys = [part.content for part in authority.children() if part.context(0)] if authority else []
    ways = [way.children() for way in access.children()] if access else []
    return {
        "AuthorityKeyId": _text(keys[0]) if keys else None,
        "OCSPServer": _or_null(place.text() for method, place in ways if method.object_id() == _OCSP),
        "IssuingCertificateURL": _or_null(place.text() for method, place in ways if method.object_id() == _ISSUERS),
        "CRLDistributionPoints": _or_null(_uris(lists)) if lists else None,
        "PolicyIdentifiers": _or_null(_id(policy.children()[0]) for policy in policies.children())
        if policies
        else None,
    }


def _uris(element: Element) -> list[Value]:
    """Every URI in an element, at any depth."""
    if element.tag == 0x80 | _URI:
        return [element.text()]
    constructed = bool(element.tag & 0x20)
    return [uri for child in element.children() for uri in _uris(child)] if constructed else []


def _alternatives(extensions: Extensions) -> Fields:
    addresses = [str(ipaddress.ip_address(name)) for name in _contents(extensions, _ADDRESS)]
    return {
        "DNSNames": _or_null(_named(extensions, _DNS)),
        "EmailAddresses": _or_null(_named(extensions, _EMAIL)),
        "IPAddresses": _or_null(addresses),
    }


def _named(extensions: Extensions, kind: int) -> list[str]:
    return [content.decode("utf-8", "replace") for content in _contents(extensions, kind)]


def _contents(extensions: Extensions, kind: int) -> list[bytes]:
    """The alternative names of one kind."""
    names = extensions.get((2, 5, 29, 17))
    return [name.content for name in names.children() if name.context(kind)] if names else []


IMPLEMENTATION = Implementation({"x509_decode_string": _decode})

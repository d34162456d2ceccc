"""`x509.decode`: its results for certificates and requests, and its errors for other texts."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.cel import EvaluationError, Value, compile
from scanner.policies.kyverno.libraries import environment
from scanner.policies.kyverno.libraries.certificates import IMPLEMENTATION

CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIICsDCCAhmgAwIBAgIBBTANBgkqhkiG9w0BAQsFADAtMQswCQYDVQQGEwJERTEM
MAoGA1UECgwDT3JnMRAwDgYDVQQDDAdleGFtcGxlMCAXDTI2MTEyMTE3MjMwMloY
DzIwODEwODI0MTcyMzAyWjAtMQswCQYDVQQGEwJERTEMMAoGA1UECgwDT3JnMRAw
DgYDVQQDDAdleGFtcGxlMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC3rvay
Gc3zEE3qoNEa6B77CVUQo4j6exgUL7lENPhnlAo+P7ZMUkkmz72UO4ksKJq7qunF
3yNoJIq0P0zWyn2RNuEqQvAvypo6X4u3bsX3Y6pGX1iz2Og3e7R4TK1KyHwKlmzy
N0Fooy+FH79sFYCIARpoAit5BYeqoDTYjhGMvwIDAQABo4HdMIHaMB0GA1UdDgQW
BBRyvTYvvTRL8v1/eN1NxcibTkqrqzAfBgNVHSMEGDAWgBRyvTYvvTRL8v1/eN1N
xcibTkqrqzAPBgNVHRMBAf8EBTADAQH/MCEGA1UdEQQaMBiCCWEuZXhhbXBsZYcE
CgAAAYEFYUBiLmMwCwYDVR0PBAQDAgKEMBMGA1UdJQQMMAoGCCsGAQUFBwMBMBsG
A1UdHwQUMBIwEKAOoAyGCmh0dHA6Ly9jcmwwJQYDVR0eBB4wHKAMMAqCCC5leGFt
cGxloQwwCocICgEAAP//AAAwDQYJKoZIhvcNAQELBQADgYEAQ9CsA5M9i1lUmkg5
XqnYD2KWRxu4mY6KdLQF0zAPv97pTc8FFj5J8gNDTM+VQTXAScq05gDs/h2TuTmj
Zl0PgmZBIuwfXju0uDJAwp4SG68qqkbrpDwZSnc7wdH+dRP+6g9AdN5mGnQDwXdP
2AGRNyXcxbZm6oEoxVuJRbMHaI4=
-----END CERTIFICATE-----
"""
REQUEST = """-----BEGIN CERTIFICATE REQUEST-----
MIIBdDCB3gIBADAOMQwwCgYDVQQDDANyZXEwgZ8wDQYJKoZIhvcNAQEBBQADgY0A
MIGJAoGBALeu9rIZzfMQTeqg0RroHvsJVRCjiPp7GBQvuUQ0+GeUCj4/tkxSSSbP
vZQ7iSwomruq6cXfI2gkirQ/TNbKfZE24SpC8C/Kmjpfi7duxfdjqkZfWLPY6Dd7
tHhMrUrIfAqWbPI3QWijL4Ufv2wVgIgBGmgCK3kFh6qgNNiOEYy/AgMBAAGgJzAl
BgkqhkiG9w0BCQ4xGDAWMBQGA1UdEQQNMAuCCXIuZXhhbXBsZTANBgkqhkiG9w0B
AQsFAAOBgQBuVdS1mYyDMuZ03+E4ZP5f8l+4PusLzIq2QKCSE2VE6S079B0Swa9y
1rr3nflIMUAi8pWJZhgimvXAID4a1yX7rNOkZmLqCpzruqMLyiiiKf5o3g4MzOyV
8jtzKbMzzqzcxLG/2A16CzO0ZmkIbpZaYkNEfOiVpZvLp+vQKAgXDw==
-----END CERTIFICATE REQUEST-----
"""
ELLIPTIC = """-----BEGIN CERTIFICATE-----
MIIBcTCCARegAwIBAgIUHvmZK9P0CuWkIpqKMgDDae10brcwCgYIKoZIzj0EAwIw
DTELMAkGA1UEAwwCZWMwIBcNMjYxMTIxMTcyMzAyWhgPMjA4MTA4MjQxNzIzMDJa
MA0xCzAJBgNVBAMMAmVjMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEY6aGKQza
VyEFdofmE7xAxqs+BgID58UjgNAKvqXhCEHNEUrObKIlSwKS3N7eOe1FPT231Cqr
4HXJyWby1CLU5KNTMFEwHQYDVR0OBBYEFGn0NI7jK1uRcpZC4s4/olUeJZckMB8G
A1UdIwQYMBaAFGn0NI7jK1uRcpZC4s4/olUeJZckMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSAAwRQIgJ9tGjm/a1coyYBYSeCCk0c8wG6bEC8x4EtbXQM+H
RhQCIQCT+bT6C81gMULmxbwexick1gdP5aQ009A3a65yksQSRQ==
-----END CERTIFICATE-----
"""


def evaluated(text: str, pem: str) -> Value:
    """Return the value of an expression about `x509.decode(object)`."""
    return compile(text, environment(namespaced=False)).evaluate({"object": pem})


@pytest.mark.parametrize(
    ("expected", "field"),
    [
        (5.0, "SerialNumber"),
        (["DE"], "Issuer.Country"),
        ("example", "Issuer.CommonName"),
        (None, "Issuer.OrganizationalUnit"),
        ([2.0, 5.0, 4.0, 6.0], "Issuer.Names[0].Type"),
        ("2026-11-21T17:23:02Z", "NotBefore"),
        ("2081-08-24T17:23:02Z", "NotAfter"),
        (65537.0, "PublicKey.E"),
        (1.0, "PublicKeyAlgorithm"),
        (33.0, "KeyUsage"),
        ([1.0], "ExtKeyUsage"),
        (True, "IsCA"),
        (-1.0, "MaxPathLen"),
        (False, "MaxPathLenZero"),
        ([".example"], "PermittedDNSDomains"),
        ([{"IP": "10.1.0.0", "Mask": "//8AAA=="}], "ExcludedIPRanges"),
        (["a.example"], "DNSNames"),
        (["a@b.c"], "EmailAddresses"),
        (["10.0.0.1"], "IPAddresses"),
        (["http://crl"], "CRLDistributionPoints"),
        ("cr02L700S/L9f3jdTcXIm05Kq6s=", "AuthorityKeyId"),
        (None, "OCSPServer"),
    ],
)
def test_a_certificate_is_a_map_of_gos_fields(expected: Value, field: str) -> None:
    """A certificate is a map of the fields of Go's structure; numbers are doubles, absent values null."""
    assert expected == evaluated(f"x509.decode(object).{field}", CERTIFICATE)


@pytest.mark.parametrize(
    ("expected", "field"), [("req", "Subject.CommonName"), (["r.example"], "DNSNames"), (65537.0, "PublicKey.E")]
)
def test_a_request_has_a_subject(expected: Value, field: str) -> None:
    """A certificate request has a subject, and the requested extensions are its fields."""
    assert expected == evaluated(f"x509.decode(object).{field}", REQUEST)


@pytest.mark.parametrize(
    ("expected", "pem"),
    [
        ("failed to decode PEM block", "no certificate"),
        ("failed to decode PEM block", CERTIFICATE.replace("M", "?")),
        ("certificate should use rsa algorithm", ELLIPTIC),
        (
            "PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST",
            REQUEST.replace("CERTIFICATE REQUEST", "PUBLIC KEY"),
        ),
    ],
)
def test_undecodable_texts_are_errors_in_kyvernos_words(expected: str, pem: str) -> None:
    """A text that is not an RSA certificate or request is an error with Kyverno's text."""
    with pytest.raises(EvaluationError) as caught:
        evaluated("x509.decode(object)", pem)
    assert expected == str(caught.value)


@given(st.integers(0, 600), st.binary(max_size=4))
def test_a_broken_certificate_is_an_error_and_nothing_else(at: int, noise: bytes) -> None:
    """A certificate with damaged bytes gives an error of the evaluation or a value, and no other exception."""
    whole = base64.b64decode("".join(CERTIFICATE.splitlines()[1:-1]))
    body = base64.b64encode(whole[:at] + noise + whole[at + len(noise) :]).decode()
    decode = IMPLEMENTATION.runs["x509_decode_string"]
    assert decode is not None
    try:
        decoded = decode(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
    except EvaluationError:
        return
    assert isinstance(decoded, dict)

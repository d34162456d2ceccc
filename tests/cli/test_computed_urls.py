"""A URL that an expression computes from an environment variable is in no output of a scan, after success and after failure of the request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from scanner.model.json import as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.policies.kyverno.made import pod, policy
from tests.policies.kyverno.serving import serving

CANARY = "hunter2canary"
ENV = "object.spec.containers[0].env[0].value"
URLS = {
    "path": f"'http://HOST/a/' + {ENV}",
    "query": f"'http://HOST/?q=' + {ENV}",
    "user": f"'http://' + {ENV} + ':x@HOST/'",
    "password": f"'http://me:' + {ENV} + '@HOST/'",
    "fragment": f"'http://HOST/#' + {ENV}",
    "host": f"'http://' + {ENV} + '.invalid:1/'",
    "port": f"'http://HOST:' + {ENV} + '/'",
    "scheme": f"{ENV} + '://HOST/'",
    "no URL": f"'http://[' + {ENV}",
    "redirect": f"'http://HOST/elsewhere/' + {ENV}",
    "metadata service": f"'http://169.254.169.254/' + {ENV}",
    "part": f"'http://HOST/' + {ENV}.substring(1) + {ENV}.substring(0, 1)",
}
ASKED = {
    "in a validation": lambda url: policy(f"http.Get({url}).none == 'x'"),
    "in a message": lambda url: policy({"expression": "false", "messageExpression": f"string(http.Get({url}).none)"}),
    "in a variable": lambda url: policy(
        "variables.answer.none == 'x'", variables=[{"name": "answer", "expression": f"http.Get({url})"}]
    ),
    "in a condition": lambda url: policy(
        "false", matchConditions=[{"name": "asks", "expression": f"http.Post({url}, {{}}).none == 'x'"}]
    ),
    "of an image": lambda url: policy(f"image.GetMetadata({url}).none == 'x'"),
}


@pytest.fixture
def host() -> Iterator[str]:
    """A server that refuses what it does not redirect to the path that it was asked for."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(302 if "elsewhere" in request.path else 503)
        request.send_header("Location", f"http://{CANARY}.invalid:1{request.path}")
        request.send_header("Content-Length", "0")
        request.end_headers()

    with serving(answer) as place:
        yield place


@pytest.mark.long
@pytest.mark.parametrize("asked", ASKED)
def test_no_output_has_a_computed_url(assay: Assay, home: Path, host: str, asked: str) -> None:
    """Neither the host nor the rest of it: report, streams, pages and database."""
    (home / "in").mkdir()
    env = [{"name": "A", "value": CANARY}]
    objects = [pod("web", containers=[{"name": "main", "image": "nginx", "env": env}])]
    for number, url in enumerate(URLS.values()):
        document = ASKED[asked](url.replace("HOST", host))
        objects.append({**document, "metadata": {"name": f"asks-{number}"}})
    (home / "in" / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    flags = ("--allow-network", "--allow-network-to", "127.0.0.0/8", "--html", "site", "-o", "json", "-v")
    ran = assay("scan", "--from", "in", *flags)
    written = [path.read_bytes() for path in home.rglob("*") if path.is_file() and path.parent != home / "in"]
    policies = {as_text(dig(finding, "policy")) for finding in as_list(ran.report["findings"])}
    assert len(policies) > 3
    parts = [CANARY[start : start + 8].encode() for start in range(len(CANARY) - 7)]
    found = [part for part in parts for data in (ran.stdout, ran.stderr.encode(), *written) if part in data]
    assert [] == found

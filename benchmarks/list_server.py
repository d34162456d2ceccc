"""A synthetic API server: discovery, policies, and a list of as many pods as are asked for, in chunked pages over TLS.

`python -m benchmarks.list_server FOLDER PODS` writes `ca.pem` and `url` into the folder when the server is ready, and serves
until it is killed. Pods have the shape that a server sends: status, managed fields, owner references. A few pages are made
beforehand, and every page of the list is one of them with names and UIDs of its own, so that serving is as cheap as reading.
"""

from __future__ import annotations

import random
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import orjson

from benchmarks.objects import MAKERS, NAMESPACES, WORDS, Body, namespaces
from benchmarks.policies import policies
from scanner.model.json import Json, JsonObject, as_object, as_text

PAGE = 500
VERSION = "4711"
_PLACE = b"@@@@@@@@"
_DIFFERENT = 8
_CHUNK = 32 * 1024
_ADMISSION = "admissionregistration.k8s.io"
_KINDS = {
    "": [("namespaces", "Namespace", "Cluster"), ("pods", "Pod", "Namespaced")],
    _ADMISSION: [
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", "Cluster"),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "Cluster"),
    ],
}
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def pods(count: int, limit: int, start: int) -> bytes:
    """Return a page of the list, from the pod number `start`. Whole pages of PAGE pods are the quick case."""
    size = min(limit, count - start)
    left = count - start - size
    place = b"%08d" % start
    metadata: JsonObject = {"resourceVersion": VERSION}
    if left:
        metadata = {**metadata, "continue": str(start + size), "remainingItemCount": left}
    head = orjson.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata})[:-1]
    items = _items(start // PAGE % _DIFFERENT)
    body = b",".join(items[:size]) if size <= PAGE else b",".join(_more(items, size))
    return head + b',"items":[' + body.replace(_PLACE, place) + b"]}\n"


def _more(items: tuple[bytes, ...], size: int) -> Iterator[bytes]:
    """Return the items of a page that is longer than those made beforehand: a prefix makes their names different."""
    for number in range(size):
        prefix = b"%02x" % (number // PAGE)
        yield items[number % PAGE].replace(_PLACE, prefix + _PLACE)


@cache
def _items(different: int) -> tuple[bytes, ...]:
    """Return the pods of a page, with a mark in the place of the page's number."""
    dice = random.Random(different)
    return tuple(orjson.dumps(_pod(dice, number, different)) for number in range(PAGE))


def _pod(dice: random.Random, number: int, different: int) -> JsonObject:
    """Return a pod of one of the twenty ReplicaSets of its page, each of which is in one namespace."""
    group = number // (PAGE // len(WORDS))
    template_hash = f"{different * 1000 + group:07d}"
    name = f"{WORDS[group]}-{_PLACE.decode()}"
    made = MAKERS["Pod"](dice, f"{name}-{number:03x}", f"team-{(7 * different + 3 * group) % NAMESPACES:02}")
    metadata = as_object(made.body["metadata"])
    labels: JsonObject = {**as_object(metadata["labels"]), "pod-template-hash": template_hash}
    above = f"{name}-{template_hash}"
    reference: JsonObject = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": above, "uid": _uid(0x1000 + group),
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    written: JsonObject = {
        **metadata,
        "labels": labels,
        "generateName": f"{above}-",
        "uid": _uid(number),
        "resourceVersion": str(1000 + number),
        "creationTimestamp": "2026-08-01T08:00:00Z",
        "ownerReferences": [reference],
        "managedFields": [_managed("kube-controller-manager", made.body), _managed("kubelet", {"status": made.status})],
    }
    return {"metadata": written, "spec": made.body["spec"], "status": made.status}


def _uid(number: int) -> str:
    return f"{_PLACE.decode()}-0000-4000-8000-{number:012x}"


def _managed(manager: str, body: JsonObject) -> JsonObject:
    shown: Body = {key: value for key, value in body.items() if key in ("metadata", "spec", "status")}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-08-01T08:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": _fields(shown),
        **({"subresource": "status"} if "status" in shown else {}),
    }


def _fields(value: Json) -> JsonObject:
    """Return the fields of a value as managed fields name them."""
    if isinstance(value, dict):
        return {f"f:{key}": _fields(below) for key, below in value.items()}
    if isinstance(value, list) and all(isinstance(item, dict) and "name" in item for item in value):
        named = (as_object(item) for item in value)
        return {f'k:{{"name":"{item["name"]}"}}': {".": {}, **_fields(item)} for item in named}
    return {}


class _Handler(BaseHTTPRequestHandler):
    """Answers over one connection, request by request."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    count = 0

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if url.path == "/api/v1/pods":
            self._answer(pods(self.count, int(query.get("limit", PAGE)), int(query.get("continue", 0))))
            return
        answer = fixed().get(url.path)
        self._answer(_NOT_FOUND if answer is None else answer, 404 if answer is None else 200)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_review = urlsplit(self.path).path == _REVIEWS
        self._answer(_REVIEW if is_review else _NOT_FOUND, 201 if is_review else 404)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name of the base class
        del format, args

    def _answer(self, data: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"".join(_chunks(data)))
        self.wfile.flush()


def _chunks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _CHUNK):
        chunk = data[start : start + _CHUNK]
        yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
    yield b"0\r\n\r\n"


_NOT_FOUND = orjson.dumps({"kind": "Status", "apiVersion": "v1", "message": "not found", "code": 404})
_REVIEW = orjson.dumps({"status": {"userInfo": {"username": "auditor", "groups": ["system:authenticated"]}}})


@cache
def fixed() -> dict[str, bytes]:
    """Return the answers that are always the same, by path."""
    documents = list(policies())
    spaces: list[JsonObject] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}]
    spaces += [made.body for made in namespaces()]
    named = {f"/api/v1/namespaces/{name}": space for space in _stored(spaces) for name in [_name(space)]}
    lists = {f"/apis/{_ADMISSION}/v1/{plural}": [each for each in documents if each["kind"] == kind] for plural, kind, _ in _KINDS[_ADMISSION]}  # fmt: skip
    answers: dict[str, Json] = {
        "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
        "/api": _discovery(""),
        "/apis": _discovery(_ADMISSION),
        "/api/v1/namespaces": _list("v1", "Namespace", spaces),
        **named,
        **{path: _list(f"{_ADMISSION}/v1", as_text(items[0]["kind"]), items) for path, items in lists.items()},
    }
    return {path: orjson.dumps(answer) for path, answer in answers.items()}


def _name(body: JsonObject) -> str:
    return as_text(as_object(body["metadata"])["name"])


def _stored(documents: Sequence[JsonObject]) -> list[JsonObject]:
    return [
        {**each, "metadata": {**as_object(each["metadata"]), "uid": f"uid-{each['kind']}-{_name(each)}", "resourceVersion": "7"}}
        for each in documents
    ]  # fmt: skip


def _list(version: str, kind: str, documents: Sequence[JsonObject]) -> JsonObject:
    items: list[Json] = [{key: value for key, value in each.items() if key not in ("apiVersion", "kind")} for each in _stored(documents)]  # fmt: skip
    return {"kind": f"{kind}List", "apiVersion": version, "metadata": {"resourceVersion": VERSION}, "items": items}


def _discovery(group: str) -> JsonObject:
    resources: list[Json] = [
        {
            "resource": plural,
            "responseKind": {"group": group, "version": "v1", "kind": kind},
            "scope": scope,
            "verbs": ["get", "list"],
        }
        for plural, kind, scope in _KINDS[group]
    ]
    versions: list[Json] = [{"version": "v1", "freshness": "Current", "resources": resources}]
    item: Json = {"metadata": {"name": group} if group else {}, "versions": versions}
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [item]}


def main(folder: str, count: str) -> None:
    home = Path(folder)
    key, certificate = home / "key.pem", home / "ca.pem"
    request = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*request, *names, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    _Handler.count = int(count)
    for different in range(_DIFFERENT):
        _items(different)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    ready = home / "url.part"
    ready.write_text(f"https://127.0.0.1:{server.server_port}")
    ready.rename(home / "url")
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])

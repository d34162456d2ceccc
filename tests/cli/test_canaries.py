"""No part of a secret leaves Assay: each way of a value through policies is followed to every output of a scan.

For each source of a secret and operations on it, an object has a canary of its own, and policies put the result into
every place. The outputs of the scan are searched for any eight characters of any canary. `make nightly` tries every operation
on every source; without EVERY_EXAMPLE each source has three or four of them, by turns.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from scanner.model.json import as_list, as_text, dig
from scanner.report import FORMATS
from tests.cli.conftest import Assay
from tests.thorough import FULL

pytestmark = pytest.mark.long

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
GROUP = "admissionregistration.k8s.io"
WINDOW = 8
SOURCES = {
    "data": "object.data.p",
    "string-data": "object.stringData.p",
    "param": "params.data.p",
    "environment": "object.spec.containers[0].env[0].value",
    "annotation": f"object.metadata.annotations['{LAST_APPLIED}']",
    "namespace": f"namespaceObject.metadata.annotations['{LAST_APPLIED}']",
    "header": "object.spec.containers[0].livenessProbe.httpGet.httpHeaders[0].value",
    "sibling": "object.spec.settings[0].value",
    "config-map-key": "object.data['db-password']",
    "param-key": "params.data['db-password']",
    "copy-of-a-secret": "object.metadata.annotations['kapp.k14s.io/original']",
    "old-copy": "object.metadata.annotations['tool.example.com/before']",
    "copy-elsewhere": "object.data.backup",
    "copy-in-base64": "object.data.backup",
    "list": "object.spec.credentials[0]",
    "map": "object.spec.auth.bearer",
    "plural": "object.data['db_passwords']",
    "named-by-key": "object.spec.settings[0].value",
    "flag": "object.spec.containers[0].args[1]",
    "assignment": "object.spec.containers[0].args[0]",
    "url": "object.spec.containers[0].args[0]",
    "user": "request.userInfo.extra['example.com/NAME'][0]",
}
DONE = {
    "as-it-is": "string({0})",
    "variable": "string(variables.v)",
    "upper": "{0}.upperAscii()",
    "lower": "{0}.lowerAscii()",
    "substring": "{0}.substring(1, {0}.size() - 1)",
    "replace": "{0}.replace('x', '~')",
    "split": "{0}.split('').join(' ')",
    "loop": "{0}.split('').filter(c, c != 'x').map(c, c + '_').join('')",
    "formatted": "'%s'.format([{0}])",
    "concatenated": "'<' + {0} + '>'",
    "pieces": "{0}.substring(0, {0}.size() / 2) + '~' + {0}.substring({0}.size() / 2)",
    "found-by-name": "object.spec.containers.map(c, c.env.filter(e, e.name == 'A').map(e, e.value.upperAscii()).join('')).join('')",
}
ONLY = {"found-by-name": ("environment",)}
"""Operations that exist for some sources only, with these sources."""
REFUSING = "upper"
"""The operation whose errors deny the object; with all others the object is changed."""
ALWAYS = ("as-it-is", REFUSING)

RESOURCES = {
    **dict.fromkeys(("data", "string-data", "copy-of-a-secret", "old-copy"), "secrets"),
    **dict.fromkeys(("environment", "header", "flag", "assignment", "url"), "pods"),
    **dict.fromkeys(("sibling", "list", "map", "named-by-key"), "widgets"),
}
"""The kinds of the objects with the secrets; all others are ConfigMaps."""
GROUPS = ("secrets", "pods", "widgets", "configmaps")


@dataclass(frozen=True)
class Cell:
    """A source of a secret, and an operation on it."""

    source: str
    done: str

    @property
    def name(self) -> str:
        """The name of the object and of its policies."""
        return f"{self.source}-{self.done}"

    @property
    def canary(self) -> str:
        """The text that must not be found: letters that no digest has."""
        digest = hashlib.sha256(self.name.encode()).digest()
        return "".join("ghijkmnpqrstuvwxyzGHJKMNPQRSTUVWXYZ"[byte % 35] for byte in digest[:24])

    @property
    def text(self) -> str:
        """The CEL expression of the result of the operation."""
        return DONE[self.done].format(self.read)

    @property
    def read(self) -> str:
        """The CEL expression of the secret."""
        return SOURCES[self.source].replace("NAME", self.name)

    @property
    def resource(self) -> str:
        """The kind of the object."""
        return RESOURCES.get(self.source, "configmaps")


def operations(source: str, among: Iterable[str], more: int) -> list[str]:
    """The operations on a source: all, or those that every source has and some more, which sources take by turns."""
    among = list(among)
    possible = [done for done in DONE if source in ONLY.get(done, among)]
    others = [done for done in possible if done not in (*ALWAYS, *ONLY)]
    turn = among.index(source) * more
    few = {*ALWAYS, *ONLY, *(others[(turn + each) % len(others)] for each in range(more))}
    return [done for done in possible if FULL or done in few]


def cells_of(resource: str) -> list[Cell]:
    """The cells of all sources whose objects are of a kind."""
    sources = [source for source in SOURCES if RESOURCES.get(source, "configmaps") == resource]
    return [Cell(source, done) for source in sources for done in operations(source, SOURCES, more=1)]


def thing(api: str, kind: str, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    """A manifest."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def documents(cell: Cell) -> Iterator[dict[str, Any]]:
    """The object of a cell, and its param."""
    name, canary = cell.name, cell.canary
    encoded = base64.b64encode(canary.encode()).decode()
    labels = {"labels": {"team": "blue"}}
    match cell.source:
        case "data":
            yield thing("v1", "Secret", name, "shop", metadata=labels, data={"p": encoded})
        case "string-data":
            yield thing("v1", "Secret", name, "shop", metadata=labels, stringData={"p": canary})
        case "param":
            yield thing("v1", "Secret", name, "vault", data={"p": encoded})
            yield thing("v1", "ConfigMap", name, "shop", metadata=labels, data={"mode": "quiet"})
        case "environment":
            env = [{"name": "A", "value": f" {canary} "}, {"name": "B", "value": "on"}]
            yield thing("v1", "Pod", name, "shop", metadata=labels, spec={"containers": [{"name": "web", "env": env}]})
        case "annotation":
            applied = json.dumps({"data": {"p": f'{canary}"\\'}})
            metadata = {**labels, "annotations": {LAST_APPLIED: applied}}
            yield thing("v1", "ConfigMap", name, "shop", metadata=metadata, data={"mode": "quiet"})
        case "namespace":
            yield thing("v1", "Namespace", name, metadata={"annotations": {LAST_APPLIED: json.dumps({"p": canary})}})
            yield thing("v1", "ConfigMap", name, name, metadata=labels, data={"mode": "quiet"})
        case "header":
            probe = {"httpGet": {"port": 80, "httpHeaders": [{"name": "Authorization", "value": canary}]}}
            container = {"name": "web", "livenessProbe": probe}
            yield thing("v1", "Pod", name, "shop", metadata=labels, spec={"containers": [container]})
        case "config-map-key":
            yield thing("v1", "ConfigMap", name, "shop", metadata=labels, data={"db-password": canary, "mode": "quiet"})
        case "user":
            yield thing("v1", "ConfigMap", name, "shop", metadata=labels, data={"mode": "quiet"})
        case _:
            yield from copies(cell) if "cop" in cell.source else named(cell)


def named(cell: Cell) -> Iterator[dict[str, Any]]:
    """The object of a cell whose secret has a name, and its param."""
    name, canary = cell.name, cell.canary
    labels = {"labels": {"team": "blue"}}
    match cell.source:
        case "flag" | "assignment" | "url":
            arguments = {
                "flag": ["--auth-token", canary],
                "assignment": [f"--token={canary}"],
                "url": [f"postgres://shop:{canary}@db:5432/shop"],
            }
            container = {"name": "web", "args": arguments[cell.source]}
            yield thing("v1", "Pod", name, "shop", metadata=labels, spec={"containers": [container]})
        case "sibling" | "list" | "map" | "named-by-key":
            specs = {
                "sibling": {"settings": [{"name": "proxy-authorization", "value": canary}]},
                "list": {"credentials": [canary]},
                "map": {"auth": {"bearer": canary, "secretRef": {"name": "other"}}},
                "named-by-key": {"settings": [{"key": "apiKey", "value": canary}]},
            }
            yield thing("example.com/v1", "Widget", name, "shop", metadata=labels, spec=specs[cell.source])
        case "param-key":
            yield thing("v1", "ConfigMap", name, "vault", data={"db-password": canary})
            yield thing("v1", "ConfigMap", name, "shop", metadata=labels, data={"mode": "quiet"})
        case "plural":
            yield thing(
                "v1", "ConfigMap", name, "shop", metadata=labels, data={"db_passwords": canary, "mode": "quiet"}
            )


def copies(cell: Cell) -> Iterator[dict[str, Any]]:
    """The object of a cell with a copy of a Secret."""
    name, canary = cell.name, cell.canary
    encoded = base64.b64encode(canary.encode()).decode()
    labels = {"labels": {"team": "blue"}}
    match cell.source:
        case "copy-of-a-secret":
            copy = json.dumps({"data": {"p": encoded}})
            metadata = {**labels, "annotations": {"kapp.k14s.io/original": copy}}
            yield thing("v1", "Secret", name, "shop", metadata=metadata, data={"p": encoded})
        case "old-copy":
            metadata = {**labels, "annotations": {"tool.example.com/before": f"p: {canary}"}}
            yield thing("v1", "Secret", name, "shop", metadata=metadata, data={"p": "bmV3"})
        case "copy-elsewhere":
            copy = json.dumps({"apiVersion": "v1", "kind": "Secret", "data": {"p": canary}})
            yield thing("v1", "ConfigMap", name, "shop", metadata=labels, data={"backup": copy, "mode": "quiet"})
        case "copy-in-base64":
            copy = base64.b64encode(json.dumps({"kind": "Secret", "data": {"p": canary}}).encode()).decode()
            yield thing("v1", "ConfigMap", name, "shop", metadata=labels, data={"backup": copy, "mode": "quiet"})


WIDGETS = thing(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "widgets.example.com",
    spec={
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
)


def policies(cell: Cell) -> Iterator[dict[str, Any]]:
    """Policies that put the result of the operation into every place."""
    text = cell.text
    yield from policy(
        cell,
        "Validating",
        "validates",
        validations=[
            {"expression": "false", "messageExpression": f"'got ' + {text}"},
            {"expression": f"{text} == 'other'"},
            {"expression": f"int({text}) > 0"},
            {"expression": f"dyn({{{text}: 1}})['none'] == 1"},
            {"expression": f"duration({text}) == duration('1s') || quantity({text}).isInteger()"},
        ],
        auditAnnotations=[
            {"key": "plain", "valueExpression": text},
            {"key": "error", "valueExpression": f"string(int({text}))"},
        ],
    )
    patches = {
        "value": f'[JSONPatch{{op: "add", path: "/metadata/labels/copy", value: {text}}}]',
        "path": f'[JSONPatch{{op: "add", path: "/metadata/labels/" + {text}, value: "x"}}]',
        "key": f'[JSONPatch{{op: "add", path: "/metadata/annotations", value: {{{text}: "x"}}}}]',
        "nowhere": f'[JSONPatch{{op: "replace", path: "/nowhere/" + {text} + "/x", value: "x"}}]',
        "wrong": f'[JSONPatch{{op: "add", path: "/metadata/labels/n", value: string(int({text}))}}]',
        "applied": f'Object{{metadata: Object.metadata{{labels: {{{text}: "x"}}, annotations: {{"copy": {text}}}}}}}',
    }
    if cell.done == REFUSING:
        patches["kind"] = f'[JSONPatch{{op: "add", path: "/metadata/labels", value: {text}}}]'
    for place, mutation in patches.items():
        yield from mutating(cell, place, mutation)
    yield from mutating(
        cell,
        "twice",
        f'[JSONPatch{{op: "add", path: "/metadata/labels/copy", value: {text}}}]',
        '[JSONPatch{op: "add", path: "/metadata/labels/again", value: object.metadata.labels.copy.upperAscii()}]',
    )
    yield from mutating(
        cell,
        "reinvoked",
        'Object{metadata: Object.metadata{labels: {"late": object.metadata.?labels.?copy.orValue("none").lowerAscii()}}}',
        f'[JSONPatch{{op: "add", path: "/metadata/labels/copy", value: {text}}}]',
        reinvocationPolicy="IfNeeded",
    )
    condition = [{"name": "c", "expression": f"int({text.replace('variables.v', cell.read)}) > 0"}]
    yield from mutating(cell, "condition", "Object{}", matchConditions=condition)
    yield from removing(cell)


def removing(cell: Cell) -> Iterator[dict[str, Any]]:
    """Mutations without input: the previous value and a copied value are secrets too."""
    places = {
        "data": "/data/p",
        "environment": "/spec/containers/0/env/0/value",
        "annotation": f"/metadata/annotations/{LAST_APPLIED.replace('/', '~1')}",
        "header": "/spec/containers/0/livenessProbe/httpGet/httpHeaders/0/value",
        "sibling": "/spec/settings/0/value",
        "config-map-key": "/data/db-password",
        "copy-of-a-secret": "/metadata/annotations/kapp.k14s.io~1original",
        "old-copy": "/metadata/annotations/tool.example.com~1before",
        "copy-elsewhere": "/data/backup",
        "copy-in-base64": "/data/backup",
        "list": "/spec/credentials",
        "map": "/spec/auth",
        "plural": "/data/db_passwords",
        "named-by-key": "/spec/settings",
        "flag": "/spec/containers/0/args",
        "assignment": "/spec/containers/0/args",
        "url": "/spec/containers/0/args/0",
    }
    if cell.done == "as-it-is" and cell.source in places:
        place = places[cell.source]
        yield from mutating(cell, "over", f'[JSONPatch{{op: "replace", path: "{place}", value: "bmV3"}}]')
        yield from mutating(cell, "out", f'[JSONPatch{{op: "remove", path: "{place}"}}]')
        yield from mutating(
            cell,
            "copies",
            f'[JSONPatch{{op: "copy", from: "{place}", path: "/metadata/labels/moved"}}]',
            '[JSONPatch{op: "add", path: "/metadata/labels/" + object.metadata.labels.moved.lowerAscii(), value: "x"}]',
        )


def policy(cell: Cell, language: str, place: str, **spec: Any) -> Iterator[dict[str, Any]]:
    """A policy on the object of a cell alone, and its binding."""
    name = f"{cell.name}-{place}"
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [cell.resource]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resourceNames": [cell.name]}]},
        "variables": [{"name": "v", "expression": cell.read}],
        **spec,
    }
    bound: dict[str, Any] = {"policyName": name}
    if language == "Validating":
        bound["validationActions"] = ["Deny"]
    if cell.source in ("param", "param-key"):
        spec["paramKind"] = {"apiVersion": "v1", "kind": "Secret" if cell.source == "param" else "ConfigMap"}
        bound["paramRef"] = {"name": cell.name, "namespace": "vault", "parameterNotFoundAction": "Deny"}
    yield thing(f"{GROUP}/v1", f"{language}AdmissionPolicy", name, spec=spec)
    yield thing(f"{GROUP}/v1", f"{language}AdmissionPolicyBinding", name, spec=bound)


def mutating(cell: Cell, place: str, *mutations: str, **spec: Any) -> Iterator[dict[str, Any]]:
    """A mutating policy on the object of a cell, and its binding."""
    bodies = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
        if text.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
        for text in mutations
    ]
    defaults = {
        "failurePolicy": "Fail" if cell.done == REFUSING else "Ignore",
        "reinvocationPolicy": "Never",
        "mutations": bodies,
    }
    yield from policy(cell, "Mutating", place, **{**defaults, **spec})


def forms(cell: Cell) -> Iterator[str]:
    """A canary, plain and in base64, at each of the three offsets at which the encoding may begin."""
    yield cell.canary
    for lead in ("", "_", "__"):
        once = base64.b64encode(f"{lead}{cell.canary}".encode()).decode()
        yield once[4:].rstrip("=")[:-1]
        for more in ("", "_", "__"):
            yield base64.b64encode(f"{more}{once.rstrip('=')}".encode()).decode()[8:].rstrip("=")[:-2]


def windows(text: str) -> Iterator[int]:
    """Every eight characters in a row of a text, each read as one number; characters beyond ASCII are alike."""
    data = text.encode("ascii", "replace")
    ends = (len(data) - (len(data) - start) % WINDOW for start in range(WINDOW))
    return chain.from_iterable(memoryview(data[start:end]).cast("Q") for start, end in enumerate(ends))


def leaked_cells(data: bytes, cells: list[Cell]) -> set[str]:
    """The names of the cells with a canary in some bytes, in any case and with any characters between letters."""
    text = data.decode("utf-8", "replace").lower()
    secret = {cell.name: {window for form in forms(cell) for window in windows(form.lower())} for cell in cells}
    every = set[int]().union(*secret.values())
    written = every.intersection(windows(text)) | every.intersection(windows(re.sub(r"[^a-z0-9+/]|\\n", "", text)))
    return {name for name, numbers in secret.items() if not written.isdisjoint(numbers)}


SOME = Cell("data", "upper")
EXPLAINED = 12
"""How many findings of a scan are explained."""


@pytest.mark.parametrize(
    "leaked",
    [
        SOME.canary,
        f"<td>{SOME.canary[5:13].upper()}</td>",
        " ".join(SOME.canary),
        json.dumps([*SOME.canary]),
        "\n".join(SOME.canary),
        base64.b64encode(SOME.canary.encode()).decode(),
        base64.b64encode(f'{{"p":"{SOME.canary}"}}'.encode()).decode(),
        base64.b64encode(base64.b64encode(SOME.canary.encode())).decode(),
    ],
)
def test_a_canary_is_recognised(leaked: str) -> None:
    """It is recognised cut, spelled letter by letter, in other case, and encoded once or twice."""
    assert {SOME.name} == leaked_cells(f"it is {leaked}.".encode(), [SOME, Cell("data", "lower")])


def written(home: Path, cells: list[Cell]) -> list[str]:
    """The flags of a scan of the objects and the policies of cells, which are in a file now."""
    (home / "in").mkdir()
    manifests = [manifest for cell in cells for manifest in (*documents(cell), *policies(cell))]
    items = [WIDGETS, *manifests] if cells[0].resource == "widgets" else manifests
    (home / "in" / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    extra = [f"example.com/{cell.name}={cell.canary}" for cell in cells if cell.source == "user"]
    requester = ["--as-user", "jane", *(part for each in extra for part in ("--as-user-extra", each))]
    return ["--from", "in", *(requester if extra else [])]


def test_every_source_and_operation_is_tried() -> None:
    """No operation is left out by the turns, neither on an object nor on another one that is read."""
    cells = [cell for resource in GROUPS for cell in cells_of(resource)]

    assert (set(SOURCES), set(DONE)) == ({cell.source for cell in cells}, {cell.done for cell in cells})
    assert set(DONE) == {done for source in READ for done in operations(source, READ, more=2)}


@pytest.mark.parametrize("resource", GROUPS)
def test_no_output_of_a_scan_contains_a_secret(
    assay: Assay, home: Path, monkeypatch: pytest.MonkeyPatch, resource: str
) -> None:
    """Reports of every format, the database, the streams and temporary files are searched."""
    cells = cells_of(resource)
    (home / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(home / "temporary"))
    ran = assay("scan", *written(home, cells), "--html", "site", "-o", "json", "-v")
    printed = [ran.stdout, ran.stderr.encode()]
    for name, form in FORMATS.items():
        if form.target != "folder":
            shown = assay("report", "last", "-o", name)
            printed += [shown.stdout, shown.stderr.encode()]
    findings = as_list(ran.report["findings"])
    for finding in findings[:: len(findings) // EXPLAINED]:
        shown = assay("explain", as_text(dig(finding, "fingerprint")))
        printed += [shown.stdout, shown.stderr.encode()]
    files = [path.read_bytes() for path in home.rglob("*") if path.is_file() and path.parent != home / "in"]

    policies_of_findings = {as_text(dig(finding, "policy")) for finding in findings}
    assert {f"{cell.name}-validates" for cell in cells} <= policies_of_findings
    assert {f"{cell.name}-applied" for cell in cells} <= policies_of_findings
    assert len(files) > len(printed)
    assert set() == leaked_cells(b"\n".join([*printed, *files]), cells)


READ = {
    "secret": ("secrets", "data.p"),
    "environment": ("pods", "spec.containers[0].env[0].value"),
    "header": ("pods", "spec.containers[0].livenessProbe.httpGet.httpHeaders[0].value"),
    "annotation": ("configmaps", f"metadata.annotations['{LAST_APPLIED}']"),
    "config-map-key": ("configmaps", "data['db-password']"),
    "field": ("widgets", "spec.token"),
}
"""Secrets in other objects: the resource, and the path in the object."""
READING = {
    "get": "resource.Get('{api}', '{resource}', 'shop', '{name}').{path}",
    "list": "resource.List('{api}', '{resource}', 'shop').items.filter(i, i.metadata.name == '{name}')[0].{path}",
    "entry": "globalContext.Get('{resource}', '').filter(i, i.metadata.name == '{name}')[0].{path}",
}
"""The ways in which an expression reads another object."""
PLACES: dict[str, dict[str, Any]] = {
    "message": {"validations": [{"expression": "false", "messageExpression": "'got ' + string({0})"}]},
    "value": {"validations": [{"expression": "{0} == 'other'"}]},
    "error": {"validations": [{"expression": "int({0}) > 0"}]},
    "key": {"validations": [{"expression": "dyn({string({0}): 1})['none'] == 1"}]},
    "image": {"validations": [{"expression": "image(string({0}) + ' x').registry() == 'y'"}]},
    "condition": {
        "matchConditions": [{"name": "c", "expression": "int({1}) > 0"}],
        "validations": [{"expression": "true"}],
    },
}


def read_documents(cell: Cell) -> Iterator[dict[str, Any]]:
    """An object with a secret, in a namespace whose other objects are evaluated."""
    encoded = base64.b64encode(cell.canary.encode()).decode()
    match cell.source:
        case "secret":
            yield thing("v1", "Secret", cell.name, "shop", data={"p": encoded})
        case "field":
            yield thing("example.com/v1", "Widget", cell.name, "shop", spec={"token": cell.canary})
        case _:
            yield from documents(cell)


def reading(cell: Cell, way: str) -> Iterator[dict[str, Any]]:
    """Kyverno policies for a Namespace that read the object of a cell, and put the result into every place."""
    resource, path = READ[cell.source]
    api = "example.com/v1" if resource == "widgets" else "v1"
    read = READING[way].format(api=api, resource=resource, name=cell.name, path=path)
    text = DONE[cell.done].format("dyn(R)" if cell.done == "formatted" else "string(R)").replace("R", read)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["namespaces"]}
    for place, spec in PLACES.items():
        written = json.loads(
            json.dumps(spec)
            .replace("{1}", json.dumps(text.replace("variables.v", read))[1:-1])
            .replace("{0}", json.dumps(text)[1:-1])
        )
        yield thing(
            "policies.kyverno.io/v1",
            "ValidatingPolicy",
            f"{cell.name}-{way}-{place}",
            spec={
                "validationActions": ["Deny"],
                "matchConstraints": {"resourceRules": [rule]},
                "variables": [{"name": "v", "expression": read}],
                **written,
            },
        )


ENTRIES = [
    thing(
        "kyverno.io/v2",
        "GlobalContextEntry",
        resource,
        spec={"kubernetesResource": {"group": group, "version": "v1", "resource": resource, "namespace": "shop"}},
    )
    for group, resource in (("", "secrets"), ("", "pods"), ("", "configmaps"), ("example.com", "widgets"))
]


def written_for_readers(home: Path, cells: list[Cell]) -> None:
    """Write the objects of cells, and the policies that read them."""
    (home / "in").mkdir()
    policies_of_cells = (each for cell in cells for way in READING for each in reading(cell, way))
    manifests = [*(each for cell in cells for each in read_documents(cell)), *policies_of_cells]
    everything = [WIDGETS, *ENTRIES, thing("v1", "Namespace", "shop"), *manifests]
    (home / "in" / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": everything}))


def test_no_output_contains_a_secret_of_another_object(
    assay: Assay, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kyverno's expressions read objects that they do not evaluate."""
    cells = [Cell(source, done) for source in READ for done in operations(source, READ, more=2)]
    (home / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(home / "temporary"))
    written_for_readers(home, cells)
    ran = assay("scan", "--from", "in", "--html", "site", "-o", "json", "-v")
    files = [path.read_bytes() for path in home.rglob("*") if path.is_file() and path.parent != home / "in"]
    failed = {as_text(dig(finding, "policy")) for finding in as_list(ran.report["findings"])}

    assert {f"{cell.name}-{way}-{place}" for cell in cells for way in READING for place in PLACES} == failed
    assert set() == leaked_cells(b"\n".join([ran.stdout, ran.stderr.encode(), *files]), cells)


HARMLESS = {
    "label": 'Object{metadata: Object.metadata{labels: {"owner": object.metadata.labels.team.upperAscii()}}}',
    "path": '[JSONPatch{op: "add", path: "/metadata/labels/" + object.metadata.labels.team, value: "yes"}]',
    "names": 'Object{metadata: Object.metadata{labels: {"of": object.spec.containers.filter(c, c.image != "").map(c, c.name)[0]}}}',
    "moved": '[JSONPatch{op: "move", from: "/metadata/labels/team", path: "/metadata/labels/group"}]',
    "listed": 'Object{metadata: Object.metadata{labels: {"all": variables.all.map(c, c.image).join(".")}}}',
}


def harmless(plain: str) -> Iterator[dict[str, Any]]:
    """A Pod with a secret in a field that the policies do not read."""
    container = {"name": "web", "image": "nginx", "env": [{"name": "A", "value": "opensesame"}]}
    spec = {"containers": [container]}
    yield thing("v1", "Pod", "web", "shop", metadata={"labels": {"team": "blue"}}, spec=spec)
    cell = Cell("environment", "web")
    variables = [
        {"name": "all", "expression": "object.spec.containers + object.spec.?initContainers.orValue([])"},
        {"name": "foreign", "expression": "variables.all.filter(c, !c.image.contains('/')).map(c, c.name)"},
    ]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    match = {"resourceRules": [rule]}
    yield from mutating(cell, plain, HARMLESS[plain], matchConstraints=match, variables=variables)
    message = "'not ours: ' + variables.foreign.join(', ') + ' of ' + object.metadata.labels.team.upperAscii()"
    validations = [{"expression": "variables.foreign.size() == 0", "messageExpression": message}]
    validates = policy(
        cell, "Validating", "validates", matchConstraints=match, variables=variables, validations=validations
    )
    yield from validates


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("label", '+ /metadata/labels/owner: "BLUE"'),
        ("path", '+ /metadata/labels/blue: "yes"'),
        ("names", '+ /metadata/labels/of: "web"'),
        ("moved", '- /metadata/labels/team: "blue"\n+ /metadata/labels/group: "blue"'),
        ("listed", '+ /metadata/labels/all: "nginx"'),
    ],
)
def test_values_beside_a_secret_are_shown(assay: Assay, home: Path, place: str, expected: str) -> None:
    """A mutation that reads another field keeps its diff, and a message its words."""
    (home / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*harmless(place)]}))
    report = assay("scan", "--from", "all.json", "-o", "json").report
    values = {
        as_text(dig(finding, "check", "kind")): as_text(dig(finding, "message"))
        for finding in as_list(report["findings"])
    }

    assert sorted(expected.splitlines()) == sorted(values["mutation"].splitlines())
    assert "not ours: web of BLUE" == values["validation"]

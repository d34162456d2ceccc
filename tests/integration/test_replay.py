"""A scan of a real API server is repeated from its snapshot, and a packet of it is evaluated again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.cli.test_snapshots import findings
from tests.integration.apiserver import ApiServer
from tests.integration.made import binding, labelled, namespace, policy
from tests.integration.manifests import apply

PLACE, NUMBER = "replayed", 60
SECRET = "c3VwZXItc2VjcmV0LXZhbHVl"
BY = "replay"
POLICIES = ("replay", "replay-param", "replay-secret", "replay-error")


def documents() -> list[JsonObject]:
    """Policies about ConfigMaps and Secrets, one with a param, one that reads what a snapshot withholds, one that fails."""
    kind: Json = {"apiVersion": "v1", "kind": "ConfigMap"}
    reference: Json = {"name": "limit", "namespace": PLACE, "parameterNotFoundAction": "Deny"}
    made = [
        policy("replay", "configmaps", expression="int(object.data.n) % 3 != 0"),
        policy("replay-param", "configmaps", expression="int(object.data.n) < int(params.data.most)", paramKind=kind),
        policy("replay-secret", "secrets", expression=f"object.data.password != '{SECRET}'"),
        policy("replay-error", "configmaps", expression="object.data.nothing == ''"),
    ]
    for each in made:
        selector: Any = dig(each, "spec", "matchConstraints", "objectSelector")
        selector["matchLabels"] = {"evaluated-by": BY}
    bindings = [binding(name) for name in POLICIES if name != "replay-param"]
    return [namespace(PLACE), *made, *bindings, binding("replay-param", paramRef=reference)]


def objects() -> list[JsonObject]:
    """The ConfigMaps and Secrets."""
    limit = labelled("ConfigMap", "nothing", "limit", namespace=PLACE, data={"most": "40"})
    maps = [labelled("ConfigMap", BY, f"map-{n:02}", namespace=PLACE, data={"n": f"{n}"}) for n in range(NUMBER)]
    secrets = [labelled("Secret", BY, f"secret-{n}", namespace=PLACE, data={"password": SECRET}) for n in range(3)]
    return [limit, *maps, *secrets]


@pytest.fixture
def scanned(api_server: ApiServer, assay: Assay) -> JsonObject:
    """The report of a scan with a snapshot."""
    apply(api_server, [*documents(), *objects()])
    chosen = [flag for name in POLICIES for flag in ("--policy", name)]
    flags = ("--kubeconfig", api_server.kubeconfig, *chosen, "--snapshot", "x.snapshot", "--chunk-size", "10")
    return assay("scan", "-q", *flags, "-o", "json").report


def test_a_replay_has_the_findings_with_any_number_of_workers(scanned: JsonObject, assay: Assay, home: Path) -> None:
    """But for those whose check may read what is withheld; in another folder, without the server."""
    live = findings(scanned)
    kept = {key: found for key, found in live.items() if found["policy"] != "replay-secret"}
    (home / "elsewhere").mkdir()
    (home / "x.snapshot").rename(home / "elsewhere/x.snapshot")
    for workers in ("1", "2", "4"):
        ran = assay("scan", "-q", "--from", "elsewhere/x.snapshot", "--workers", workers, "-o", "json")
        gaps = [as_text(dig(gap, "where")) for gap in as_list(ran.report["gaps"])]
        assert (kept, ["policy replay-secret"], 3) == (findings(ran.report), gaps, ran.code)

    assert {"replay", "replay-param", "replay-secret", "replay-error"} == {found["policy"] for found in live.values()}


@pytest.mark.parametrize(("of", "number", "code"), [("objects", 500, 3), ("passes", 26, 0), ("findings", 25, 0)])
def test_a_packet_of_a_real_server_is_reproduced(
    scanned: JsonObject, assay: Assay, of: str, number: int, code: int
) -> None:
    """Passes and findings of policies that read nothing which is withheld, as a whole."""
    only = ["--policy", "replay-param"] if of != "objects" else []
    flags = ("--seed", "2026-Q4", "--n", str(number), "--of", of, *only)
    made = assay("sample", *flags, "--snapshot", "x.snapshot", "--out", f"{of}.zip")
    assert 0 == made.code, made.stderr
    ran = assay("reperform", f"{of}.zip")

    printed = ran.stdout.decode()
    assert code == ran.code, printed
    assert "differ" not in printed.replace("differs", "")
    if not code:
        assert f"{min(number, 40 if of == 'passes' else 20)} of " in printed

"""A packet is evaluated again by another person, who has the file alone."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
import stat
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from scanner.cluster.snapshots.archive import FORMAT, PACKET, SNAPSHOT, SnapshotWriter
from tests.cli.conftest import EXAMPLES, Assay
from tests.cli.test_snapshots import POLICIES, pod, thing, validating
from tests.command import ASSAY, assay_here, environment
from tests.proof.draw_independently import draw
from tests.thorough import examples

FLIPS = examples(200)
OBJECT = ["apiVersion", "kind", "namespace", "name", "uid"]
DAY = "2030-06-30"
"""The day of the report of the packet with everything: a waiver applies on this day alone, another one ended before."""
BASELINE = {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted"}


EVERY_OUTCOME = {
    *(("ValidatingAdmissionPolicy", outcome, False) for outcome in ("passed", "violated", "errored", "skipped")),
    *(("ValidatingAdmissionPolicy", outcome, True) for outcome in ("violated", "errored")),
    *(("MutatingAdmissionPolicy", outcome, False) for outcome in ("passed", "wouldChange")),
    ("MutatingAdmissionPolicy", "errored", True),
    *(("ValidatingPolicy", outcome, denies) for outcome, denies in (("passed", False), ("violated", True))),
    ("ValidatingPolicy", "errored", True),
    *(
        ("PodSecurity", outcome, denies)
        for outcome, denies in (("passed", False), ("violated", False), ("violated", True))
    ),
}
"""Language, outcome, and whether it denies: violations of policies that only warn or audit do not."""


def members(path: Path) -> dict[str, bytes]:
    """The members of a packet by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def verdicts(packet: Path) -> list[dict[str, Any]]:
    """The verdicts of all items."""
    return [each for item in orjson.loads(members(packet)["expected.json"])["items"] for each in item["verdicts"]]


def write_manifests(home: Path, *manifests: dict[str, Any]) -> None:
    """Manifests as a file in the folder `in`."""
    (home / "in").mkdir(exist_ok=True)
    (home / "in/all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*manifests]}))


@pytest.fixture
def make(assay: Assay, home: Path) -> Callable[..., Path]:
    """Scan manifests, and make a packet of a sample of the scan."""

    def made(*manifests: dict[str, Any], sample: tuple[str, ...] = ()) -> Path:
        write_manifests(home, *manifests)
        assay("scan", "-q", "--from", "in", "--snapshot", "x.snapshot")
        ran = assay("sample", "--seed", "s", "--snapshot", "x.snapshot", "--out", "p.zip", *sample)
        assert 0 == ran.code, ran.stderr
        return home / "p.zip"

    return made


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a packet with every object of the example cluster, and of one with a level of Pod Security."""
    home = tmp_path_factory.mktemp("everything")
    (home / "own").mkdir()
    namespace = thing("v1", "Namespace", "levels", metadata={"labels": BASELINE})
    pods = (pod_of_level(name, **fields) for name, fields in (("a", {}), ("b", {"hostPID": True})))
    own = [namespace, *pods, *failing_policies()]
    (home / "own/all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": own}))
    run(home, "scan", "-q", "--from", EXAMPLES / "cluster", "--from", "own", *POLICIES, "--snapshot", "x.snapshot")
    waivers = (waiver("ended", "2030-06-01", "2030-06-29"), waiver("accepted", DAY, DAY))
    (home / "waivers.yaml").write_text("\n---\n".join(map(json.dumps, waivers)))
    flags = ("--n", "500", "--seed", "s", "--snapshot", "x.snapshot", "--waivers", "waivers.yaml", "--at", DAY)
    made = run(home, "sample", *flags, "--out", "p.zip")
    assert 0 == made.returncode, made.stderr
    return home


def waiver(name: str, since: str, until: str) -> dict[str, Any]:
    """A waiver of the pod that is below the level of its namespace, from one day until another."""
    people = {"requestedBy": "ann", "approvedBy": "bob", "ticket": "SEC-1", "reason": "The <vendor> needs it."}
    spec = {"policy": "pod-security", "namespace": "levels", "object": "Pod/b", "from": since, "until": until, **people}
    return {"apiVersion": "assay.dev/v1alpha1", "kind": "Waiver", "metadata": {"name": name}, "spec": spec}


def failing_policies() -> list[dict[str, Any]]:
    """A mutating policy and one of Kyverno whose expressions fail for the pods in the namespace with the level."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    levels = {"matchLabels": {"kubernetes.io/metadata.name": "levels"}}
    match = {"resourceRules": [pods], "namespaceSelector": levels}
    absent = "object.metadata.labels.team"
    patch = {"expression": f"Object{{metadata: Object.metadata{{labels: {{'team': {absent}}}}}}}"}
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": patch}
    mutating = {"matchConstraints": match, "mutations": [mutation], "reinvocationPolicy": "Never"}
    validating = {"matchConstraints": match, "validations": [{"expression": f"{absent} == ''"}]}
    group = "admissionregistration.k8s.io/v1"
    return [
        thing(group, "MutatingAdmissionPolicy", "failing", spec=mutating),
        thing(group, "MutatingAdmissionPolicyBinding", "failing", spec={"policyName": "failing"}),
        thing(
            "policies.kyverno.io/v1", "ValidatingPolicy", "failing", spec={"validationActions": ["Deny"], **validating}
        ),
    ]


def pod_of_level(name: str, **spec: Any) -> dict[str, Any]:
    """A pod in the namespace with the level."""
    return thing("v1", "Pod", name, "levels", spec={"containers": [{"name": "web", "image": "nginx:1"}], **spec})


def run(home: Path, *arguments: str | Path, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run the program as a process of its own."""
    line = [*before, *map(str, (ASSAY, *arguments))]
    return subprocess.run(
        line, cwd=home, env=environment(home, {}), capture_output=True, text=True, check=False, timeout=600
    )


def test_every_outcome_of_every_language_is_reproduced_without_network(everything: Path, tmp_path: Path) -> None:
    """In a namespace of the kernel that has no network, and in a folder that has the packet alone."""
    shutil.copy(everything / "p.zip", tmp_path / "p.zip")
    without = ("unshare", "--user", "--map-root-user", "--net")
    if subprocess.run([*without, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no rights to make a namespace without network")
    ran = run(tmp_path, "reperform", "p.zip", before=without)
    number = len(orjson.loads(members(tmp_path / "p.zip")["expected.json"])["items"])

    assert f"{number} of {number} reproduced." in ran.stdout
    assert 0 == ran.returncode, ran.stderr
    assert [tmp_path / "p.zip"] == list(tmp_path.iterdir())
    every = verdicts(tmp_path / "p.zip")
    found = {(each["language"], each["outcome"], each["denies"]) for each in every}
    assert EVERY_OUTCOME <= found
    assert {"validation", "auditAnnotation", "mutation", "configuration"} <= {each["kind"] for each in every}
    bindings = {each["binding"] for each in every}
    assert {"autogen-defaults", "autogen-cronjobs", "enforce-baseline-latest", "warn-restricted-latest"} <= bindings
    assert any(each["excepted_by"] for each in every)


def test_the_page_is_complete_and_loads_nothing(everything: Path) -> None:
    """No script, no address of another file; each item has its verdicts, and the fields that decided are marked."""
    page = members(everything / "p.zip")["index.html"].decode()
    assert ['<link rel="icon" href="data:,">'] == re.findall(
        r"<(?:script|img|iframe|object|embed|link|audio|video)[^>]*>", page
    )
    assert [] == [address for address in re.findall(r'(?:href|src|action)="([^"]*)"', page) if address[0] != "#"][1:]
    assert "default-src 'none'" in page
    assert "<mark>" in page
    assert "ask the sender for the SHA-256" in page


def test_a_waived_finding_has_its_waiver_as_of_the_date_and_is_reproduced(everything: Path) -> None:
    """The verdict is what it was. Who has the packet alone reads the reason and the approver; a waiver that ended is none."""
    parts = members(everything / "p.zip")
    items = [orjson.loads(parts[name]) for name in parts if name.startswith("items/")]
    (item,) = [each for each in items if (each["object"]["kind"], each["object"]["metadata"]["name"]) == ("Pod", "b")]
    page = parts["index.html"].decode()

    assert {("pod-security", "accepted")} == {
        (each["policy"], each["waiver"]["name"]) for each in item["findings"] if each["waiver"]
    }
    assert [("accepted", DAY, DAY, "bob")] == [
        (each["name"], each["from"], each["until"], each["approvedBy"]) for each in item["waivers"]
    ]
    assert [item["id"]] == [each["id"] for each in items if each["waivers"]]
    assert ("PodSecurity", "violated", True) in {
        (each["language"], each["outcome"], each["denies"]) for each in item["verdicts"]
    }
    assert f"waived by accepted until {DAY}" in page
    assert "The &lt;vendor&gt; needs it." in page
    assert "ended" not in re.findall(r"waived by (\w+)", page)
    assert 0 == run(everything, "reperform", "p.zip").returncode


def test_the_digests_are_those_of_the_report(everything: Path) -> None:
    """A reader finds them in every report of the scan."""
    parts = members(everything / "p.zip")
    digests = orjson.loads(parts["expected.json"])["digests"]
    report = json.loads(run(everything, "report", "-o", "json").stdout)
    assert {"method", "rules", "population", "findings"} <= digests.keys()
    assert all(digest in json.dumps(report) for digest in digests.values())
    assert all(digest in parts["index.html"].decode() for digest in digests.values())


def test_the_parts_for_readers_need_no_program(everything: Path) -> None:
    """Each item is a JSON document with its object and its verdicts, and the sample follows from the files."""
    parts = members(everything / "p.zip")
    expected = orjson.loads(parts["expected.json"])
    ids = draw(parts["population.csv"], "s", len(expected["items"]), OBJECT, [])
    for place, identifier in enumerate(ids, 1):
        item = orjson.loads(parts[f"items/{place:06}.json"])
        assert (place, identifier) == (item["order"], item["id"])
        assert item["object"]["metadata"]["name"] == expected["items"][place - 1]["object"]["name"]
        assert expected["items"][place - 1]["verdicts"] == item["verdicts"]


@pytest.mark.parametrize("of", ["objects", "passes", "findings"])
def test_a_packet_of_one_policy_has_its_verdicts_alone(make: Callable[..., Path], assay: Assay, of: str) -> None:
    """The objects that are not drawn are not in it."""
    pods = [pod(f"pod-{number:02}") for number in range(20)]
    named = validating("named", "object.metadata.name < 'pod-10'", "object.metadata.name != ''")
    packet = make(*pods, *named, *validating("other", "true"), sample=("--policy", "named", "--of", of, "--n", "3"))
    checks = {"objects": 6, "passes": 6, "findings": 3}[of]

    assert 0 == assay("reperform", packet).code
    assert [("named", checks)] == [*{(each["policy"], len(verdicts(packet))) for each in verdicts(packet)}]
    pages = b"".join(content for name, content in members(packet).items() if name.startswith("pages/"))
    assert 3 == pages.count(b'"kind":"Pod"') or 3 == pages.count(b'"name":"pod-')


def test_what_redaction_prevents_is_named(make: Callable[..., Path], assay: Assay) -> None:
    """A check that may read a withheld value is neither equal nor different; code 3 says so."""
    reads = validating(
        "reads", "object.spec.containers.all(c, c.env.all(e, e.value == ''))", "object.metadata.name == ''"
    )
    packet = make(pod("a"), *reads)
    ran = assay("reperform", packet)

    assert 3 == ran.code
    assert "0 of 1 reproduced." in ran.stdout.decode()
    assert "the redaction prevents 1 of their checks, and all others are equal" in ran.stdout.decode()
    assert "reads validation 0 of binding reads" in ran.stdout.decode()
    assert b"opensesame" not in b"".join((packet.read_bytes(), *members(packet).values()))


def test_hostile_names_and_messages_are_escaped(make: Callable[..., Path], assay: Assay) -> None:
    """In the page, and in what a terminal shows."""
    hostile = thing("v1", "ConfigMap", "=cmd|'<script>'", "shop", metadata={"labels": {"team": "\x1b[31m</pre>"}})
    rule = json.loads(json.dumps(validating("p", "false")).replace('"pods"', '"configmaps"'))
    packet = make(hostile, *rule)
    ran = assay("reperform", packet)

    assert 0 == ran.code, ran.stdout
    assert b"<script>" not in members(packet)["index.html"]
    assert b"\x1b" not in ran.stdout + members(packet)["index.html"] + members(packet)["rule.txt"]


# A packet that was changed.


def rebuild(path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Write a packet with other contents and a trailer that belongs to them, as a forger would."""
    parts = members(path)
    change(parts)
    path.unlink()
    writer = SnapshotWriter(path, "0.1.0", form=PACKET)
    for name, content in parts.items():
        if name not in {FORMAT, "trailer.json"}:
            writer.add(name, content)
    writer.close()


def replace_in(name: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    """Replace bytes of a member, which must have them."""

    def change(parts: dict[str, bytes]) -> None:
        assert old in parts[name]
        parts[name] = parts[name].replace(old, new)

    return change


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a user after a scan, with a packet of one object of twelve, which passes one check and violates another one."""
    home = tmp_path_factory.mktemp("sampled")
    write_manifests(home, *(pod(f"pod-{number}") for number in range(12)), *validating("p", "true", "false"))
    scanned = assay_here("scan", "-q", "--from", "in", "--snapshot", "x.snapshot", home=home)
    flags = ("--seed", "s", "--n", "1", "--snapshot", "x.snapshot", "--out", "p.zip")
    assert (0, 0) == (scanned.code, assay_here("sample", *flags, home=home).code)
    return home


@pytest.fixture
def packet(sampled: Path, home: Path) -> Path:
    """The packet, in a home of its own."""
    shutil.copytree(sampled, home, dirs_exist_ok=True)
    return home / "p.zip"


def test_another_verdict_is_a_difference(packet: Path, assay: Assay) -> None:
    """A forger who writes new digests changes no evaluation."""
    rebuild(packet, replace_in("expected.json", b'"outcome":"passed"', b'"outcome":"violated"'))
    ran = assay("reperform", packet)

    assert 1 == ran.code
    assert "1 of 1 differ." in ran.stdout.decode()
    assert "p validation 0 of binding p: the scan has violated; evaluated again: passed" in ran.stdout.decode()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"outcome":"passed"', b'"outcome":"skipped"', "has other verdicts than the packet"),
        (b'"message":"', b'"message":"not ', "has other findings than verdicts"),
        (b'"containers":[', b'"hostNetwork":true,"containers":[', "has another object than the one that was evaluated"),
    ],
)
def test_what_readers_see_is_what_was_evaluated(
    packet: Path, assay: Assay, old: bytes, new: bytes, message: str
) -> None:
    """A forger cannot write other verdicts, findings or objects for them beside those that are evaluated."""
    rebuild(packet, replace_in("items/000001.json", old, new))
    ran = assay("reperform", packet)

    assert 1 == ran.code
    assert message in ran.stdout.decode()


def test_another_object_is_a_difference(packet: Path, assay: Assay) -> None:
    """The page of the list decides, and not what was written about it."""

    def change(parts: dict[str, bytes]) -> None:
        [page] = [name for name in parts if name.startswith("pages/") and b'"containers"' in parts[name]]
        parts[page] = parts[page].replace(b'"name":"pod-', b'"name":"pud-')

    rebuild(packet, change)
    ran = assay("reperform", packet)
    assert (1, True) == (ran.code, "the object was not evaluated" in ran.stdout.decode())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replace_in("expected.json", b'"seed":"s"', b'"seed":"t"'), "are not those that the seed 't' draws"),
        (replace_in("population.csv", b"Pod", b"Pud"), "are not those that the seed 's' draws"),
        (replace_in("expected.json", b'"of":"objects"', b'"of":"runs"'), "population.csv is no population of runs"),
        (replace_in("expected.json", b'"kind":"validation"', b'"kind":"x"'), "a verdict names no check"),
        (lambda parts: parts.update({"items/000002.json": b"{}"}), "items/000002.json is no item of expected.json"),
        (replace_in("sample.csv", b"Pod", b"Pud"), "sample.csv is not the sample that the seed draws"),
        (lambda parts: parts.pop("expected.json"), "expected.json is missing"),
        (lambda parts: parts.update({"expected.json": b"["}), "expected.json is no JSON document"),
        (lambda parts: parts.update({"cluster.json": b'{"started":1}'}), "cluster.json"),
        (lambda parts: parts.update({"scan.json": b'{"assumeBound":[["a"]]}'}), "scan.json has an unknown form"),
        (lambda parts: parts.update({"scan.json": b"[]"}), "scan.json"),
    ],
)
def test_a_packet_without_sense_is_refused(packet: Path, assay: Assay, change: Any, message: str) -> None:
    """With digests that are right, too."""
    rebuild(packet, change)
    ran = assay("reperform", packet)

    assert 2 == ran.code
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_each_flipped_bit_is_named(packet: Path, assay: Assay) -> None:
    """In every member, at random."""
    data = packet.read_bytes()
    with zipfile.ZipFile(packet) as archive:
        extents = sorted((info.header_offset, info.filename) for info in archive.infolist())
    source, wrong = random.Random(47), list[tuple[int, str, str]]()
    starts = [start for start, _ in extents]
    # Every member has a flip, the large ones have more.
    places = [source.randrange(start, stop) for start, stop in zip(starts, [*starts[1:], len(data)], strict=True)]
    places += [source.randrange(len(data)) for _ in range(FLIPS - len(places))]
    for place in places:
        flipped = bytearray(data)
        flipped[place] ^= 1 << source.randrange(8)
        packet.write_bytes(flipped)
        ran = assay("reperform", packet)
        member = [name for start, name in extents if start <= place][-1]
        # After the members stands the directory, which has the name of each of them.
        if ran.code != 2 or (member != "trailer.json" and member not in ran.stderr):
            wrong.append((place, member, ran.stderr))

    assert FLIPS == len(places)
    assert [] == wrong


def tamper(path: Path, change: Callable[[list[tuple[zipfile.ZipInfo, bytes]]], None]) -> None:
    """Write the members of a packet again, changed, with its comment."""
    with zipfile.ZipFile(path) as archive:
        parts = [(info, archive.read(info)) for info in archive.infolist()]
        comment = archive.comment
    change(parts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, content in parts:
            archive.writestr(info, content, compresslevel=1)
        archive.comment = comment


def link(name: str) -> zipfile.ZipInfo:
    """A symbolic link."""
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: parts.pop(3), "is missing"),
        (
            lambda parts: parts.insert(1, (zipfile.ZipInfo("items/000009.json"), b"{}")),
            "items/000009.json is in no ledger",
        ),
        (lambda parts: parts.insert(1, (zipfile.ZipInfo("../../x.json"), b"{}")), "../../x.json is no name"),
        (lambda parts: parts.insert(1, (zipfile.ZipInfo("/etc/x.json"), b"{}")), "/etc/x.json is no name"),
        (lambda parts: parts.insert(1, (link("pages/000009.json"), b"/etc/passwd")), "is a link or no file"),
        (lambda parts: parts.pop(), "has no trailer.json at its end"),
        (
            lambda parts: parts.insert(2, (zipfile.ZipInfo("items/000009.json"), parts.pop(2)[1])),
            "stands where trailer.json has",
        ),
        (lambda parts: parts.insert(2, parts.pop(3)), "is not in its place"),
    ],
)
def test_hostile_members_are_named(packet: Path, assay: Assay, change: Any, message: str) -> None:
    """Nothing is unpacked."""
    tamper(packet, change)
    ran = assay("reperform", packet)

    assert (2, True) == (ran.code, message in ran.stderr), ran.stderr
    assert {"in", "p.zip", "x.snapshot"} >= {path.name for path in packet.parent.iterdir()} - {".local", ".cache"}


def test_the_trailer_of_another_packet_is_recognised(packet: Path, make: Callable[..., Path], assay: Assay) -> None:
    """Its ledger has the digests of other members."""
    other = packet.rename(packet.with_name("other.zip"))
    (packet.parent / "x.snapshot").unlink()
    make(pod("another"), *validating("p", "false"))
    with zipfile.ZipFile(other) as archive:
        trailer = archive.read("trailer.json")
    tamper(packet, lambda parts: parts.append((parts.pop()[0], trailer)))
    ran = assay("reperform", packet)

    assert 2 == ran.code
    assert re.search(r"is damaged|is missing|is in no ledger|stands where", ran.stderr), ran.stderr


def test_a_bomb_is_not_opened(packet: Path, assay: Assay) -> None:
    """A member that claims to be small has no more bytes than the ledger says; a large one is refused by its size."""
    writer = zipfile.ZipFile(packet, "w", zipfile.ZIP_DEFLATED)
    with writer, writer.open("pages/000001.json", "w") as member:
        for _ in range(257):
            member.write(bytes(1 << 20))
    ran = assay("reperform", packet)
    assert (2, True) == (ran.code, "has more than 256 MiB" in ran.stderr)


def test_each_file_names_the_command_for_the_other(packet: Path, assay: Assay, home: Path) -> None:
    """A snapshot is no packet, and a packet stands for no cluster."""
    as_packet, as_snapshot = assay("reperform", "x.snapshot"), assay("scan", "--from", packet)
    assert (2, True) == (as_packet.code, "it is a snapshot: repeat its scan with" in as_packet.stderr)
    assert (2, True) == (as_snapshot.code, "it is a packet: evaluate its items again with" in as_snapshot.stderr)
    SnapshotWriter(home / "new.zip", "9.0", 2, PACKET).close()
    newer = assay("reperform", "new.zip")
    assert (2, True) == (newer.code, "this version of Assay reads version 1" in newer.stderr)
    assert SNAPSHOT.format != PACKET.format


# Flags.


def test_the_snapshot_must_be_that_of_the_scan(assay: Assay, home: Path) -> None:
    """Its digest stands in the record of the scan."""
    write_manifests(home, pod("a"), *validating("p", "false"))
    assay("scan", "-q", "--from", "in")
    assay("snapshot", "create", "y.snapshot", "--from", "in")
    flags = ("sample", "--seed", "s", "--snapshot", "y.snapshot", "--out", "p.zip")
    without = assay(*flags)
    assay("scan", "-q", "--from", "in", "--snapshot", "x.snapshot")
    other = assay(*flags)
    digest = hashlib.sha256((home / "x.snapshot").read_bytes()).hexdigest()

    assert (2, True) == (without.code, "recorded no snapshot" in without.stderr)
    assert (2, True) == (other.code, f"recorded {digest}: name the snapshot of that scan" in other.stderr)
    assert [] == list(home.glob("*.zip*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "p.zip"], "a packet needs --snapshot FILE"),
        (["--out", "p", "--snapshot", "x.snapshot"], "a packet is a file: name one that ends with .zip"),
        (["--out", "p.zip", "--snapshot", "x.snapshot", "--of", "runs"], "--snapshot has objects, and no runs"),
        (["--out", "p.zip", "--snapshot", "no.snapshot"], "cannot be read"),
        (["--out", "x.zip", "--snapshot", "x.snapshot"], "exists already: name a new file"),
        (["--out", "no/p.zip", "--snapshot", "x.snapshot"], "cannot be written"),
    ],
)
def test_targets_that_make_no_packet_are_refused(
    packet: Path, assay: Assay, home: Path, arguments: list[str], message: str
) -> None:
    """And no file stays."""
    packet.unlink()
    (home / "x.zip").write_bytes(b"")
    ran = assay("sample", "--seed", "s", *arguments)

    assert (2, True) == (ran.code, message in ran.stderr), ran.stderr
    assert not (home / "p.zip").exists()
    assert [] == list(home.glob(".*.partial"))


def test_a_packet_has_a_largest_size(assay: Assay, home: Path) -> None:
    """Its page shows each item; the list alone may have more."""
    write_manifests(home, *(pod(f"pod-{number}") for number in range(501)), *validating("p", "true"))
    assay("scan", "-q", "--from", "in", "--snapshot", "x.snapshot")
    flags = ("sample", "--seed", "s", "--n", "501")
    packet = assay(*flags, "--snapshot", "x.snapshot", "--out", "p.zip")

    assert (2, True) == (packet.code, "a packet has at most 500 items" in packet.stderr)
    assert 0 == assay(*flags, "--out", "list").code

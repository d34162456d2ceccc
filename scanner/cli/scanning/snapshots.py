"""Snapshots of a scan: the options that one keeps, and a scan that is repeated from one.

A replay has the options of the scan that made the snapshot, unless a flag gives others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scanner.errors import UsageError
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts

if TYPE_CHECKING:
    from scanner.cli.flags.kyverno import KyvernoFlags
    from scanner.cli.flags.pod_security import PodSecurityFlags
    from scanner.cli.scanning.scan_flags import ScanFlags
    from scanner.cluster.snapshots.recording import RecordingCluster
    from scanner.cluster.snapshots.replay import ReplayedCluster
    from scanner.model.scans.scan import Scope
    from scanner.policies.language import Language
    from scanner.scan.documents import Manifest
    from scanner.scan.edges import Cluster
    from scanner.scan.options import Options

NOTE: Final = "The snapshot of this scan has the SHA-256 {0}."
REPLAY_NOTE: Final = "This scan repeats the snapshot with the SHA-256 {0}."
_NETWORK: Final = (
    "--snapshot keeps no answers of other servers: leave out --allow-network, so that a replay gives the same results"
)


def find_snapshot(paths: Sequence[Path]) -> Path | None:
    """The snapshot among the paths of --from, or None. Raises UsageError for a snapshot beside other files."""
    from scanner.cluster.snapshots.archive import is_snapshot

    found = [path for path in paths if is_snapshot(path)]
    if found and len(paths) > 1:
        raise UsageError(f"--from {found[0]} is a snapshot, which stands for a whole cluster: name it alone")
    return found[0] if found else None


def reject_combinations(flags: ScanFlags, snapshot: Path | None) -> None:
    """Raise UsageError for flags that snapshots cannot have together."""
    if flags.snapshot.record_as and snapshot is None:
        raise UsageError("--record-as needs --from with a snapshot: name another cluster with --cluster-name")
    if flags.snapshot.snapshot and snapshot:
        raise UsageError("--snapshot needs a cluster or manifests: a replay has its snapshot already")
    if flags.snapshot.snapshot and flags.kyverno.allow_network:
        raise UsageError(_NETWORK)


@contextmanager
def of_replay(flags: ScanFlags, snapshot: Path | None) -> Iterator[ScanFlags]:
    """The flags with the history of a replay: that of its name, or a database that is removed when the block ends."""
    if snapshot is None:
        yield flags
    elif name := flags.snapshot.record_as:
        yield replace(flags, history=replace(flags.history, cluster_name=name))
    else:
        with tempfile.TemporaryDirectory(prefix="assay-") as folder:
            yield replace(flags, history=replace(flags.history, db=f"sqlite:{folder}/replay.sqlite"))


def begin_recording(cluster: Cluster, path: Path) -> RecordingCluster:
    """A cluster that is written into a new snapshot. Raises UsageError for a path that exists or cannot be written."""
    from scanner import __version__
    from scanner.cluster.snapshots.page_writer import open_page_writer
    from scanner.cluster.snapshots.recording import RecordingCluster

    return RecordingCluster(cluster, open_page_writer(path, __version__))


def write_options(options: Options, flags: ScanFlags) -> JsonObject:
    """The options of a scan in its snapshot. Policies are written as they are, params without their secrets."""
    from scanner.cluster.snapshots.facts import write_kind, write_user

    pod_security = next((each for each in options.languages if each.names == ("PodSecurity",)), None)
    configuration = getattr(pod_security, "configuration", None)
    return {
        "scope": asdict(options.scope),
        "manifests": [_write_manifest(each) for each in options.manifests],
        "definitions": [write_kind(kind) for kind in options.definitions],
        "gaps": [[gap.kind.value, gap.where, gap.why] for gap in options.gaps],
        "outside": [asdict(item) for item in options.outside],
        "notes": list(options.notes),
        "clusterPolicies": options.cluster_policies,
        "derivedPolicies": options.derived_policies,
        "assumeBound": [list(each) for each in options.assume_bound],
        "user": write_user(options.user) if options.user else None,
        "kyverno": {
            "compat": flags.kyverno.compat,
            "version": flags.kyverno.version(),
            "filters": list(flags.kyverno.kyverno_filters),
        },
        "podSecurity": {
            "leftOut": flags.pod_security.no_pod_security,
            "given": configuration is not None,
            "configuration": configuration.body if configuration else None,
        },
        "allowEmpty": options.allow_empty,
    }


def _write_manifest(manifest: Manifest) -> dict[str, Json]:
    import copy

    from scanner.audit.withholding import withhold
    from scanner.model.resource import Kind, resource_of
    from scanner.scan.documents import is_policy, names_policy_kind

    body = copy.deepcopy(dict(manifest.body))
    group, _, version = as_text(body.get("apiVersion")).rpartition("/")
    kind = Kind(group, version, as_text(body.get("kind")), "", namespaced=True)
    shown = names_policy_kind(kind.kind) and is_policy(body)
    places: list[Json] = [list(place) for place in withhold(resource_of(kind, body), is_policy=shown)]
    return {"source": manifest.source, "body": body, "isNamed": manifest.is_named, "withheld": places}


def restore_options(options: Options, flags: ScanFlags, recorded: JsonObject) -> Options:
    """The options of a replay: those of the flags, and where a flag has its default those of the snapshot."""
    from scanner.cluster.snapshots.facts import read_user

    options = replace(
        options,
        scope=_restore_scope(options.scope, as_object(recorded.get("scope"))),
        languages=_restore_languages(flags.kyverno, flags.pod_security, recorded),
        cluster_policies=options.cluster_policies and recorded.get("clusterPolicies") is True,
        derived_policies=options.derived_policies and recorded.get("derivedPolicies") is True,
        assume_bound=options.assume_bound or tuple(_read_pair(each) for each in as_list(recorded.get("assumeBound"))),
        user=options.user or (read_user(recorded["user"]) if recorded.get("user") else None),
        allow_empty=options.allow_empty or recorded.get("allowEmpty") is True,
        method=replace(options.method, chunk_size=0),
    )
    return options if flags.policies.files else _restore_documents(options, recorded)


def restore_request(options: Options, recorded: JsonObject) -> Options:
    """The options with the scope and the user of a snapshot, where those of the flags have their default."""
    from scanner.cluster.snapshots.facts import read_user

    user = options.user or (read_user(recorded["user"]) if recorded.get("user") else None)
    return replace(options, scope=_restore_scope(options.scope, as_object(recorded.get("scope"))), user=user)


def restore_rules(
    options: Options, kyverno: KyvernoFlags, pod_security: PodSecurityFlags, recorded: JsonObject
) -> Options:
    """The options with the rules of a snapshot, as admission has them: assumed bindings and modes of Kyverno's reports are left out."""
    as_admission = {**recorded, "kyverno": {**as_object(recorded.get("kyverno")), "compat": ""}}
    options = replace(
        options,
        languages=_restore_languages(kyverno, pod_security, as_admission),
        cluster_policies=recorded.get("clusterPolicies") is True,
        derived_policies=recorded.get("derivedPolicies") is True,
    )
    return _restore_documents(options, recorded)


def _restore_documents(options: Options, recorded: JsonObject) -> Options:
    """The options with the policy files of the scan that made a snapshot."""
    from scanner.cluster.snapshots.facts import read_kind
    from scanner.model.outcome import Gap, GapKind
    from scanner.model.scans.out_of_scope import OutOfScope

    outside = (
        tuple(as_text(dig(item, key)) for key in ("kind", "name", "why")) for item in as_list(recorded.get("outside"))
    )
    return replace(
        options,
        manifests=tuple(_read_manifest(each) for each in as_list(recorded.get("manifests"))),
        definitions=tuple(map(read_kind, as_list(recorded.get("definitions")))),
        gaps=tuple(Gap(GapKind(kind), where, why) for kind, where, why in map(texts, as_list(recorded.get("gaps")))),
        outside=tuple(OutOfScope(*item) for item in outside),
        notes=texts(recorded.get("notes")),
    )


def _read_pair(value: Json) -> tuple[str, str]:
    first, second = texts(value)
    return first, second


def _read_manifest(value: Json) -> Manifest:
    from scanner.model.withheld import mark_withheld
    from scanner.scan.documents import Manifest

    body = dict(as_object(dig(value, "body")))
    places = [
        tuple(step for step in as_list(place) if isinstance(step, str | int))
        for place in as_list(dig(value, "withheld"))
    ]
    mark_withheld(body, places)
    return Manifest(as_text(dig(value, "source")), body, is_named=dig(value, "isNamed") is True)


def _restore_scope(scope: Scope, recorded: JsonObject) -> Scope:
    """The scope of the flags, with the recorded value of each field that has its default."""
    from scanner.model.scans.scan import Scope

    fields: dict[str, Any] = {}
    for name, default in asdict(Scope()).items():
        value = recorded.get(name)
        if getattr(scope, name) == default and value is not None:
            fields[name] = texts(value) if isinstance(default, tuple) else as_text(value)
    return replace(scope, **fields)


def _restore_languages(
    kyverno_flags: KyvernoFlags, pod_security_flags: PodSecurityFlags, recorded: JsonObject
) -> tuple[Language, ...]:
    from scanner.cli.flags.kyverno import read_kyverno_configuration
    from scanner.cluster.yaml import load
    from scanner.documents.composer import compose
    from scanner.documents.pod_security import read_configuration
    from scanner.policies.kyverno.family import KyvernoOptions
    from scanner.policies.language import with_options
    from scanner.policies.pod_security.configuration import DEFAULT
    from scanner.policies.pod_security.language import PodSecurity

    import orjson  # isort: skip

    of_kyverno, of_pods = recorded.get("kyverno"), as_object(recorded.get("podSecurity"))
    filters = kyverno_flags.kyverno_filters or texts(dig(of_kyverno, "filters"))
    kyverno = KyvernoOptions(
        compat=kyverno_flags.compat or as_text(dig(of_kyverno, "compat")),
        parse=load,
        network=kyverno_flags.network(),
        configuration=read_kyverno_configuration(filters),
        version=kyverno_flags.version() or as_text(dig(of_kyverno, "version")),
    )
    pod_security = pod_security_flags.language()
    if pod_security and not pod_security_flags.pod_security_config:
        body = of_pods.get("configuration")
        given = read_configuration(next(iter(compose(orjson.dumps(body), "snapshot")))) if body else DEFAULT
        pod_security = PodSecurity(given if of_pods.get("given") is True else None)
        pod_security = None if of_pods.get("leftOut") is True else pod_security
    return with_options(kyverno, pod_security)


def open_snapshot(path: Path, *, kubernetes_version: str) -> ReplayedCluster:
    """The cluster of a snapshot. Raises UsageError for a file that is damaged, cut off, or of another version."""
    from scanner.cluster.snapshots.replay import ReplayedCluster

    return ReplayedCluster(path, kubernetes_version=kubernetes_version)

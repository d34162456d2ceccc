"""What decided in a stored scan besides objects: see `posture.causes`."""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256

from sqlalchemy import Connection, select

from scanner.model.method import Method
from scanner.model.policy import Binding, BindingKey, Policy, PolicyKey
from scanner.model.scan import FILES, Scope
from scanner.posture.causes import Circumstances
from scanner.posture.namespace_keys import namespace_keys
from scanner.store import codec
from scanner.store.rules import read_rules
from scanner.store.shared_rows import owners_of
from scanner.store.tables import BINDINGS, POLICIES, SCAN_BINDINGS, SCAN_POLICIES, SCANS


def circumstances_of(connection: Connection, scan: int) -> Circumstances:
    """The circumstances of a scan, by its number."""
    own = SCANS.c
    columns = own.server_version, own.tool_version, own.source, own.scope, own.requester, own.method
    server, assay, source, scope, requester, method = connection.execute(
        select(*columns).where(own.number == scan)
    ).one()
    made = codec.from_text(Method, method) if method else Method()
    operation = codec.from_text(Scope, scope).operation
    owners = owners_of(connection, scan)
    policy, binding = POLICIES.c, BINDINGS.c
    policies = (
        select(policy.language, policy.name, policy.spec_digest, policy.document)
        .join(SCAN_POLICIES)
        .where(SCAN_POLICIES.c.scan == owners.policies)
    )
    bindings = (
        select(binding.language, binding.policy_name, binding.name, binding.spec_digest, binding.document)
        .join(SCAN_BINDINGS)
        .where(SCAN_BINDINGS.c.scan == owners.bindings)
    )
    of_policies = connection.execute(policies).all()
    of_bindings = connection.execute(bindings).all()
    documents = {(row.language, row.name): row.document for row in of_policies}
    documents_of_bindings = {(row.language, row.policy_name, row.name): row.document for row in of_bindings}

    @cache
    def policy_of(key: PolicyKey) -> Policy | None:
        return codec.from_text(Policy, documents[key]) if key in documents else None

    @cache
    def binding_of(key: BindingKey) -> Binding | None:
        return codec.from_text(Binding, documents_of_bindings[key]) if key in documents_of_bindings else None

    @cache
    def keys(key: PolicyKey) -> frozenset[str]:
        found = policy_of(key)
        if found is None:
            return frozenset()
        own = (binding for each in documents_of_bindings if each[:2] == key and (binding := binding_of(each)))
        return namespace_keys(key[0], found.manifest, *(each.manifest for each in own))

    return Circumstances(
        policies={(row.language, row.name): row.spec_digest for row in of_policies},
        bindings={
            (row.language, row.policy_name, row.name): _content(row.spec_digest, row.document) for row in of_bindings
        },
        rules=read_rules(connection, owners.rules),
        server=server,
        assay=assay,
        options=(operation, requester, made.kyverno_compat, str(made.network), *made.network_to),
        sources=made.policy_sources,
        of_files=source == FILES,
        namespace_keys=keys,
        policy=policy_of,
        binding=binding_of,
    )


def _content(digest: str, document: str) -> str:
    """The digest of the spec of a binding: without its name, so that a binding that is renamed has the same one.

    A binding without a spec, which no manifest contains, has its own digest.
    """
    spec = codec.from_text(Binding, document).manifest.get("spec")
    if spec is None:
        return digest
    return sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()

"""Reads the specs of policies and bindings by the digests that scans recorded of them."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, select

from scanner.model.json import JsonObject, as_object, dig
from scanner.model.policy import PolicyKey
from scanner.store.engine import among
from scanner.store.tables import BINDINGS, POLICIES


def policy_specs(connection: Connection, policy: PolicyKey, digests: Collection[str]) -> dict[str, JsonObject]:
    """The specs of a policy, by digest; a digest that no scan recorded is left out."""
    own = POLICIES.c
    wanted = select(own.spec_digest, own.document).where(own.language == policy[0], own.name == policy[1])
    rows = connection.execute(wanted.where(among(connection, own.spec_digest, sorted(digests))).order_by(own.id))
    return {digest: _spec(document) for digest, document in rows}


def binding_specs(
    connection: Connection, policy: PolicyKey, digests: Collection[str]
) -> dict[tuple[str, str], JsonObject]:
    """The specs of the bindings of a policy, by name and digest."""
    own = BINDINGS.c
    of_policy = own.language == policy[0], own.policy_name == policy[1]
    wanted = select(own.name, own.spec_digest, own.document).where(*of_policy)
    rows = connection.execute(wanted.where(among(connection, own.spec_digest, sorted(digests))).order_by(own.id))
    return {(name, digest): _spec(document) for name, digest, document in rows}


def _spec(document: str) -> JsonObject:
    stored: Any = json.loads(document)
    return as_object(dig(stored, "manifest", "spec"))

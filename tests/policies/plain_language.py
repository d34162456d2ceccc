"""The members of `Language` of the languages of the tests: one process, no generated policies, and each part of a spec decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scanner.model.json import JsonObject
from scanner.model.outcome import CheckKind
from scanner.model.policy import MatchResources, Policy, PolicyKey
from scanner.model.scans.health import Health
from scanner.policies.manifest import UnknownField


class PlainLanguage:
    """A part of a language; the other members are those in which the languages of the tests differ."""

    @property
    def single_process(self) -> bool:
        return False

    def unknown_fields(self, document: JsonObject) -> tuple[UnknownField, ...]:
        del document
        return ()

    def find_generated(self, own: Iterable[Policy], others: Iterable[Policy]) -> Iterator[tuple[PolicyKey, Health]]:
        del own, others
        yield from ()

    @property
    def is_kyvernos(self) -> bool:
        """See Language."""
        return False

    @property
    def patch_decides(self) -> bool:
        return False

    def select_deciding(self, spec: JsonObject, check: CheckKind) -> JsonObject:
        del check
        return spec

    def constraints(self, policy: Policy) -> tuple[MatchResources, ...]:
        return (policy.match,) if policy.match else ()

"""The Python interface of Assay: documents in, outcomes out.

```python
from scanner.policies.pod_security.language import PodSecurity
from scanner.api import Auditor
from scanner.cluster.definitions import builtin_kinds

auditor = Auditor(policies=[policy], bindings=[binding], params=[config_map], namespaces=[], kinds=builtin_kinds())
for invocation_result in auditor.evaluate(pod):
    print(invocation_result.invocation.binding.name, invocation_result.check_results)
```

Documents are decoded JSON objects. This module reads, lists and stores nothing; the command line uses the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from scanner.admission.auditability import AUDITABLE
from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import InvocationResult, evaluate_object
from scanner.admission.match import is_exempt
from scanner.cel import CachingDecider, Decider
from scanner.errors import InvalidManifest, SchemaUnknown, UsageError
from scanner.model.json import JsonObject, as_text, dig
from scanner.model.policy import Binding, Operation, Policy
from scanner.model.release import Minor, release_of
from scanner.model.resource import Kind, Resource, UserInfo
from scanner.mutate.schema import NO_SCHEMAS, Schemas
from scanner.mutate.versions import list_views
from scanner.policies.bound_language import BindingContext, Supporting
from scanner.policies.kyverno.autogen import served_by
from scanner.policies.kyverno.bind import KyvernoContext
from scanner.policies.kyverno.family import KyvernoOptions
from scanner.policies.language import Language, derive_from_namespaces, select_documents, with_options
from scanner.policies.plan import find_equivalents
from scanner.policies.pod_security.language import PodSecurity
from scanner.scan.param_table import ParamTable

__all__ = ["Auditor", "InvalidManifest", "InvocationResult", "KyvernoContext", "SchemaUnknown", "Schemas", "UserInfo"]


_LABELS_ALONE: Final = PodSecurity()


class Auditor:
    """Policies in force, ready to evaluate one object at a time.

    `policies` and `bindings` are manifests of any policy language and served version (UsageError for other documents); with
    `validate` a manifest that the API would not store raises InvalidManifest. `kinds` are the kinds that the cluster serves.

    A namespace that is not given exists with its name label only.

    A policy that matches another version of an object evaluates it in that version if no server is needed for the conversion.
    `authorizer` answers the authorizer checks of expressions; each check is made once. `kubernetes_version` (`1.36`, `v1.36.2`)
    selects the rules; the default is the newest known release.

    Mutating policies and their bindings may be among the others; `schemas` has the schemas by which the objects of a kind are
    merged. An object without the schema of its kind raises SchemaUnknown.

    Kyverno's validating policies may be among the others too; `exceptions` are their PolicyExceptions, and `kyverno_context` has
    the mode and the time of their evaluation, and the cluster data that they can read.

    Pod Security follows from the labels of the namespaces; `pod_security` may have the configuration of the API server, and None
    leaves it out.
    """

    def __init__(
        self,
        *,
        policies: Iterable[JsonObject],
        bindings: Iterable[JsonObject],
        params: Iterable[JsonObject] = (),
        namespaces: Iterable[JsonObject] = (),
        kinds: Iterable[Kind],
        user: UserInfo | None = None,
        validate: bool = False,
        authorizer: Decider | None = None,
        kubernetes_version: str = "",
        schemas: Schemas | None = None,
        exceptions: Iterable[JsonObject] = (),
        kyverno_context: KyvernoContext | None = None,
        pod_security: PodSecurity | None = _LABELS_ALONE,
    ) -> None:
        source = "document" if validate else "cluster"
        self.release = release_of(kubernetes_version)
        rules = self.release.rules
        self._schemas = schemas or NO_SCHEMAS
        served = tuple(kinds)
        self._kinds = {(kind.api_version, kind.kind): kind for kind in served}
        now = datetime.now(tz=UTC)
        policy_languages = with_options(
            KyvernoOptions(context=kyverno_context or KyvernoContext(now, resolve=served_by(served))), pod_security
        )
        described = tuple(namespaces)
        nouns = [
            *(_read(document, policy_languages, source, rules) for document in (*policies, *bindings, *exceptions)),
            *derive_from_namespaces(policy_languages, described, rules),
        ]
        binding_context = BindingContext(
            now=now, rules=rules, schemas=schemas, namespaces=described, user=user or UserInfo()
        )
        self.bound = tuple(
            bound_policy
            for language in policy_languages
            for bound_policy in language.bind(select_documents(language, nouns), binding_context).bound
        )
        table = ParamTable(served)
        for document in params:
            table.add(document)
        self.context = EvaluationContext(
            params=table,
            namespaces={as_text(dig(document, "metadata", "name")): document for document in described},
            implied_namespaces=True,
            equivalents=find_equivalents(served),
            user=user or UserInfo(),
            authorizer=authorizer and CachingDecider(authorizer),
        )

    def evaluate(self, document: JsonObject, *, operation: Operation | None = None) -> tuple[InvocationResult, ...]:
        """The results of every policy in force for one object, by policy, binding and param.

        `operation` is CREATE, UPDATE (one that changes nothing), or by default the first of these that a rule names. Raises
        UsageError for an object of a kind that is not served.
        """
        key = (as_text(document.get("apiVersion")), as_text(document.get("kind")))
        kind = self._kinds.get(key)
        if kind is None:
            raise UsageError(
                f"{key[1] or 'an object without kind'} in version {key[0] or '(none)'} is not among the served kinds"
            )
        context = (
            self.context.replace_operations((operation,)) if operation else self.context.replace_operations(AUDITABLE)
        )
        views = tuple(self.views(document, kind))
        bound_policies = [bound for bound in self.bound if not is_exempt(kind, static=bound.policy.static)]
        return tuple(
            invocation_result
            for bound in bound_policies
            for resource in views
            for invocation_result in evaluate_object(bound, resource, kind, context)
        )

    def views(self, document: JsonObject, kind: Kind) -> Iterator[Resource]:
        """The object in each of its kinds, as far as Assay converts without a server."""
        yield from list_views(document, kind, self.context.equivalents.get(kind, ()), relabels=self._relabels(kind))

    def _relabels(self, kind: Kind) -> bool:
        """Return whether the versions of a custom resource are known to differ in the apiVersion alone."""
        schema = self._schemas.schema(kind)
        versions = schema.custom.versions if schema and schema.custom else None
        return versions is not None and versions.relabels


def _read(
    document: JsonObject, languages: Iterable[Language], source: str, rules: Minor
) -> Policy | Binding | Supporting:
    """Read a manifest. Raises UsageError for a document of no policy language."""
    for language in languages:
        if language.reads(document):
            return language.read(document, source=source, namespace="default", rules=rules).content
    kind, version = as_text(document.get("kind")), as_text(document.get("apiVersion"))
    raise UsageError(
        f"{kind or 'a document without kind'} in version {version or '(none)'} is no policy and no binding"
    )

"""The modes in which a Kyverno policy is evaluated: as in admission, or as in one of Kyverno's own reports.

Kyverno's scan and its command line differ from its webhook: they stop at the first failure, ignore the end of an exception, and
treat a negative object selector as one that selects everything; its scan evaluates the policies of all namespaces for
cluster-scoped objects, and its command line for all objects. Assay evaluates as admission does by default.

Rules: `docs/semantics/kyverno.md#kyvernos-reports`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class KyvernoMode:
    """The differences between the modes.

    `all_validations`: all validations are evaluated, not only those up to the first that does not pass. `exempts`: an exception
    replaces the verdict; otherwise it is noted beside the verdict. `expires`: exceptions end. `ignores_negative_selectors`: an
    object selector that matches an object without labels matches every object. `create_only`: only a CREATE is simulated.
    `server`: requests come from an API server, so those on Namespaces carry their namespace, which `Handle` of
    `pkg/cel/policies/vpol/engine` reads by its name (`NewNamespaceResolver`): the stored Namespace itself, or null while it is
    being created. `evaluates_cluster_scoped`: a namespaced policy is also evaluated for objects without a namespace.
    `webhooks`: requests come through the webhooks that Kyverno registers, so the API server evaluates some match conditions first, and
    converts objects to the versions of rules. `numbers_as_doubles`: every number of an object is a double. `all_modes`: policies that
    are not for stored objects are evaluated as well. `everywhere`: a namespaced policy is evaluated for the objects of every namespace.
    """

    all_validations: bool
    exempts: bool
    expires: bool
    ignores_negative_selectors: bool
    create_only: bool
    server: bool
    evaluates_cluster_scoped: bool
    webhooks: bool
    numbers_as_doubles: bool
    all_modes: bool
    everywhere: bool


ADMISSION = KyvernoMode(
    all_validations=True,
    exempts=False,
    expires=True,
    ignores_negative_selectors=False,
    create_only=False,
    server=True,
    evaluates_cluster_scoped=False,
    webhooks=True,
    numbers_as_doubles=False,
    all_modes=False,
    everywhere=False,
)
CONTROLLER = KyvernoMode(
    all_validations=False,
    exempts=True,
    expires=False,
    ignores_negative_selectors=True,
    create_only=True,
    server=False,
    evaluates_cluster_scoped=True,
    webhooks=False,
    numbers_as_doubles=False,
    all_modes=False,
    everywhere=False,
)
CLI = replace(CONTROLLER, numbers_as_doubles=True, all_modes=True, everywhere=True)
MODES = {"": ADMISSION, "controller": CONTROLLER, "cli": CLI}

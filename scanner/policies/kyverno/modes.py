"""In whose manner a policy is judged: as admission would, or as one of Kyverno's own reports says it.

Kyverno's scan and its command line are not what its webhook enforces: they stop at the first failure, know no end of an
exception, and read a negative object selector as if it selected everything; its scan asks the policies of all namespaces about
what is in none. Assay judges as admission does unless told.

Rules: `docs/semantics/kyverno.md#kyvernos-reports`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class KyvernoMode:
    """What differs between the judges.

    `every`: all validations are asked, not only those up to the first that does not pass. `exempts`: an exception takes the
    place of the verdict, where otherwise it is noted beside it. `expires`: exceptions end. `lenient`: an object selector that
    fits an object without labels fits every object. `creates`: only a CREATE is simulated. `server`: requests come from an API
    server, so those on Namespaces carry their namespace, which `Handle` of `pkg/cel/policies/vpol/engine` looks up by its name
    (`NewNamespaceResolver`): the stored Namespace itself, or null while it is being created. `leaks`: a namespaced policy is asked
    about objects that are in no namespace, too. `doubles`: every number of an object is a double. `all_modes`: policies that are
    not meant for stored objects are asked all the same.
    """

    all_validations: bool
    exempts: bool
    expires: bool
    ignores_negative_selectors: bool
    create_only: bool
    server: bool
    evaluates_cluster_scoped: bool
    numbers_as_doubles: bool
    all_modes: bool


ADMISSION = KyvernoMode(
    all_validations=True,
    exempts=False,
    expires=True,
    ignores_negative_selectors=False,
    create_only=False,
    server=True,
    evaluates_cluster_scoped=False,
    numbers_as_doubles=False,
    all_modes=False,
)
CONTROLLER = KyvernoMode(
    all_validations=False,
    exempts=True,
    expires=False,
    ignores_negative_selectors=True,
    create_only=True,
    server=False,
    evaluates_cluster_scoped=True,
    numbers_as_doubles=False,
    all_modes=False,
)
CLI = replace(CONTROLLER, evaluates_cluster_scoped=False, numbers_as_doubles=True, all_modes=True)
MODES = {"": ADMISSION, "controller": CONTROLLER, "cli": CLI}

"""In whose manner a policy is judged: as admission would, or as one of Kyverno's own reports says it.

Kyverno's scan and its command line are not what its webhook enforces: they stop at the first failure, know no end of an
exception, and read a negative object selector as if it selected everything; its scan asks the policies of all namespaces about
what is in none. Assay judges as admission does unless told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Manner:
    """What differs between the judges.

    `every`: all validations are asked, not only those up to the first that does not pass. `exempts`: an exception takes the
    place of the verdict, where otherwise it is noted beside it. `expires`: exceptions end. `lenient`: an object selector that
    fits an object without labels fits every object. `creates`: only a CREATE is simulated. `server`: requests come from an API
    server, so those on Namespaces carry their namespace, which `Handle` of `pkg/cel/policies/vpol/engine` looks up by its name
    (`NewNamespaceResolver`): the stored Namespace itself, or null while it is being created. `leaks`: a namespaced policy is asked
    about objects that are in no namespace, too. `doubles`: every number of an object is a double. `all_modes`: policies that are
    not meant for stored objects are asked all the same.
    """

    every: bool
    exempts: bool
    expires: bool
    lenient: bool
    creates: bool
    server: bool
    leaks: bool
    doubles: bool
    all_modes: bool


ADMISSION = Manner(
    every=True,
    exempts=False,
    expires=True,
    lenient=False,
    creates=False,
    server=True,
    leaks=False,
    doubles=False,
    all_modes=False,
)
CONTROLLER = Manner(
    every=False,
    exempts=True,
    expires=False,
    lenient=True,
    creates=True,
    server=False,
    leaks=True,
    doubles=False,
    all_modes=False,
)
CLI = replace(CONTROLLER, leaks=False, doubles=True, all_modes=True)
MANNERS = {"": ADMISSION, "controller": CONTROLLER, "cli": CLI}

"""The variables of the environment whose names begin with `ASSAY_`.

Kubernetes adds variables of its own for every Service of a namespace (`makeLinkVariables` in pkg/kubelet/envvars), so a Service
`assay` gives the pods beside it `ASSAY_SERVICE_HOST` and `ASSAY_PORT`, and a Service `assay-db` gives `ASSAY_DB_PORT_5432_TCP`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from scanner.config.setting import PREFIX
from scanner.errors import UsageError
from scanner.model.nearest import find_nearest

CONFIG: Final = "ASSAY_CONFIG"
"""The variable that names the file."""
DEBUG: Final = "ASSAY_DEBUG"
"""The variable that prints details of internal errors."""
_DEFAULT_DB: Final = "ASSAY_DEFAULT_DB"
"""The variable of the container image: see `config.current`."""
PUSH_METRICS_TOKEN: Final = "ASSAY_PUSH_METRICS_TOKEN"  # noqa: S105 - a name
"""The variable with the token for the Pushgateway, which has no flag: every user of a machine can read its command lines."""
_LOG_STDOUT: Final = "ASSAY_LOG_STDOUT"
"""The variable that makes messages of standard output: see `cli.terminal.stderr`."""
JOB: Final = "ASSAY_JOB"
"""The variable that tells that a Job runs the command: see `cli.terminal.exit_codes`."""
_OWN: Final = (CONFIG, DEBUG, JOB, _LOG_STDOUT, _DEFAULT_DB, PUSH_METRICS_TOKEN)
_OF_SERVICES: Final = re.compile(
    r"ASSAY(?:_[A-Z0-9_]+)?_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)
_OF_TESTS: Final = re.compile(r"ASSAY_(?:TEST_.*|CONFORMANCE|DIFFERENCES|ORACLE|RECORDINGS)")
"""The variables of the tests and scripts of this repository."""


def is_foreign(name: str) -> bool:
    """Return whether a variable has another purpose than to set something: it is of a Service, or of the tests."""
    return _OF_SERVICES.fullmatch(name) is not None or _OF_TESTS.fullmatch(name) is not None


def select_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that set something, by name."""
    return {
        name: environment[name]
        for name in sorted(environment)
        if name.startswith(PREFIX) and name not in _OWN and not is_foreign(name)
    }


def report_unknown(names: Iterable[str], known: Iterable[str]) -> Iterator[UsageError]:
    """An error with the nearest name for each variable that is not known."""
    choices = (*known, *_OWN)
    for name in names:
        if name not in choices:
            alike = find_nearest(name.removeprefix(PREFIX), (choice.removeprefix(PREFIX) for choice in choices))
            hint = f"Did you mean {PREFIX}{alike}?" if alike else "`assay config view` lists the names"
            yield UsageError(f"the environment variable {name} is unknown: unset it, or correct its name. {hint}")

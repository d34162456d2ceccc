"""Evaluates JMESPath, the language in which global context entries project their data.

Mirrors go-jmespath within the specification of JMESPath. Functions that Kyverno adds to it are not evaluated: a check that
depends on such a function cannot be audited.
"""

from __future__ import annotations

from typing import cast

import jmespath
from jmespath.exceptions import JMESPathError, UnknownFunctionError

from scanner.cel.errors import EvaluationError
from scanner.cel.values.values import Value
from scanner.policies.kyverno.libraries.cluster_data import Unavailable

_FAILED = "failed to get global reference"


def projected(data: Value, path: str) -> Value:
    """Return the result of a path on some data. Raises EvaluationError and Unavailable."""
    try:
        return cast("Value", jmespath.search(path, data))
    except UnknownFunctionError as error:
        raise Unavailable(f"it projects by a function of Kyverno's own: {error}") from None
    except (JMESPathError, ValueError, TypeError) as error:
        raise EvaluationError(f"{_FAILED}: {error}") from None

"""What Assay raises on purpose, drawn as a tree.

Trouble has three homes: in the data it is an outcome, in our view of the cluster a gap, in the set-up one of these.
Every message says what went wrong, where, and what to do about it.
"""


class AssayError(Exception):
    """The root: the command line prints the message as one sentence and ends with `exit_code`."""

    exit_code = 4


class UsageError(AssayError):
    """A flag, an environment variable or a configuration value that cannot be used."""

    exit_code = 2


class ClusterError(AssayError):
    """The cluster cannot be reached, or refuses the credentials."""


class StoreError(AssayError):
    """The database cannot be opened, read, written or understood."""


class InvalidManifest(AssayError):
    """A policy or binding that the Kubernetes API would refuse.

    `reasons` are field errors in the API's own words, e.g. `spec.matchConstraints: Required value`.
    """

    exit_code = 2

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__(reasons[0] if len(reasons) == 1 else f"[{', '.join(reasons)}]")
        self.reasons = reasons


class ConfigurationError(AssayError):
    """What the admission plugin calls a configuration error: it becomes an `Errored` outcome, never a crash."""


class SchemaUnknown(AssayError):
    """A kind whose OpenAPI schema is not known: what a mutation would do to its objects only a server can tell.

    `kind` is such as `apps/v1/Deployment`.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"no OpenAPI schema of {kind} is known, so only a server can tell what it would make of its objects: check "
            "that the server serves /openapi/v3, or add the CustomResourceDefinition to the files"
        )
        self.kind = kind


class ListFailed(AssayError):
    """A kind could not be listed, or not to its end: the scan goes on and records a gap.

    `state` is `forbidden` or `failed`, as coverage names it.
    """

    def __init__(self, state: str, why: str) -> None:
        super().__init__(why)
        self.state = state
        self.why = why


class AuthorizerFailed(AssayError):
    """The authorizer was asked on behalf of an expression and gave no answer: the object is a gap for that policy."""

"""The exceptions that Assay raises on purpose.

A problem in the data is an outcome, a problem in reading the cluster is a gap, a problem in the set-up is one of these.
Every message names the problem, its place and the remedy.
"""


class AssayError(Exception):
    """The base class: the command line prints the message and ends with `exit_code`.

    An error that `needs_user` meets every other try until a user acts: a Job does not try it again (ADR 79).
    """

    exit_code = 4
    needs_user = False


class UsageError(AssayError):
    """An invalid flag, environment variable or configuration value."""

    exit_code = 2


class NotFound(UsageError):
    """A name or an id that the database does not have."""


class NoScans(UsageError):
    """A database that does not exist, or that has no finished scan."""


class ClusterError(AssayError):
    """The cluster cannot be reached, or rejects the credentials."""


class InvalidKubeconfig(ClusterError):
    """There is no kubeconfig, or it cannot be used: it is malformed, or lacks the context, the user or credentials."""

    needs_user = True


class StoreError(AssayError):
    """The database cannot be opened, read or written, or its contents are not those of Assay."""


class DatabaseUnreachable(StoreError):
    """A database that does not answer now, and may answer later: nothing of what was asked for has happened."""


class DatabaseUnusable(StoreError):
    """A database without the named place or user, without a right, with damage, or without a driver of its kind."""

    needs_user = True


class CredentialsRefused(DatabaseUnusable):
    """A database that rejects the user or the password, as after a change of the password."""


class CredentialsChanged(CredentialsRefused):
    """A database that rejects the credentials with which this process has opened it: another try reads those of now."""

    needs_user = False


class SchemaMismatch(DatabaseUnusable):
    """A database that this version cannot read.

    Its `state` is `older`, `newer`, `copying` for a copy that has not ended, or `foreign` for the tables of another program.
    """

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message)
        self.state = state


class MissingTableRight(DatabaseUnusable):
    """The user of a PostgreSQL database lacks a right to read. The message has neither the address nor the name of the user."""

    def __init__(self, lack: str) -> None:
        """`lack` ends a sentence about the user, such as `may not read the table words`."""
        super().__init__(
            f"the user of the database {lack}. Run `assay db upgrade --grant-select USER` as the owner of the tables"
        )


class QueryTooLong(StoreError):
    """A query has taken longer than a reader of the web application may wait."""


class InvalidManifest(AssayError):
    """A policy or binding that the Kubernetes API would reject.

    `reasons` are field errors in the API's own words, e.g. `spec.matchConstraints: Required value`.
    """

    exit_code = 2

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__(reasons[0] if len(reasons) == 1 else f"[{', '.join(reasons)}]")
        self.reasons = reasons


class ConfigurationError(AssayError):
    """A configuration error of the admission plugin, which becomes an `Errored` outcome."""


class SchemaUnknown(AssayError):
    """A kind without a known OpenAPI schema, which a mutation of its objects needs.

    `kind` is a text such as `apps/v1/Deployment`.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"no OpenAPI schema of {kind} is known, so mutations of its objects cannot be evaluated: check that the server "
            "serves /openapi/v3, or add the CustomResourceDefinition to the files"
        )
        self.kind = kind


class ConversionUnknown(SchemaUnknown):
    """A custom resource whose conversion to another of its versions is unknown, which a mutation in that version needs.

    `kind` is a text such as `example.com/v1/Widget`, `group` and `plural` name its CustomResourceDefinition.
    """

    def __init__(self, kind: str, *, definition: str, webhook: bool) -> None:
        why = (
            f"a webhook converts {kind}, so only a server knows what a mutation in another version makes of an object: name "
            "the version of the requests in the rules of the policy, or compare with assay verify-parity"
            if webhook
            else f"the CustomResourceDefinition {definition} is unknown, so mutations of {kind} in another version cannot be "
            f"evaluated: grant get on customresourcedefinitions, or add the definition to the files"
        )
        AssayError.__init__(self, why)
        self.kind = kind


class ListFailed(AssayError):
    """A kind could not be listed completely: the scan continues and records a gap.

    `state` is `forbidden` or `failed`, as in `CoverageState`.
    """

    def __init__(self, state: str, why: str) -> None:
        super().__init__(why)
        self.state = state
        self.why = why


class AuthorizerFailed(AssayError):
    """An authorizer check of an expression got no answer: the object is a gap for that policy."""

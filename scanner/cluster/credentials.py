"""The address of the cluster and the credentials: from a kubeconfig or a pod's service account.

Source of truth: client-go's loading rules. Of several files the first with a setting wins. Missing and empty files are ignored
unless the user named them, and the pod's own credentials are used only without any file. Unlike client-go, no request is sent
over TLS without credentials: an anonymous scan would find nothing, and advise rights for everybody.
"""

from __future__ import annotations

import logging
import os
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from scanner.audit.sensitive_fields import names_secret
from scanner.cluster.simple_kubeconfig import Entries, plain_account, plain_kubeconfig
from scanner.cluster.yaml import problem_of
from scanner.errors import ClusterError
from scanner.files import SECRET, read_text
from scanner.model.json import Json, as_list, as_object, as_text, dig, texts
from scanner.model.nearest import did_you_mean
from scanner.model.urls import secrets_of_url

_DEFAULT: Final = "~/.kube/config"
_ENTRY: Final = re.compile(r"\S*\{.*", re.DOTALL)
_HEADER: Final = re.compile(r"[\x20-\x7e]*")
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END", re.DOTALL)
_SHOWN: Final = 20
_LOGIN: Final = "check it with `kubectl config view`, or name another with --kubeconfig or --context"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The settings for one cluster.

    `configuration` is the official client's or has the same fields; its refresh hook renews the token. `as_user` and `as_groups`
    are the impersonation in the kubeconfig. `own_proxy` is true for a proxy from the kubeconfig, not from the environment,
    `uncompressed` if the kubeconfig disables compression. `context` is empty in a pod. `named_secrets` are the values in the user's
    entry under names of secrets.
    """

    cluster: str
    configuration: Any
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    own_proxy: bool = False
    uncompressed: bool = False
    context: str = ""
    named_secrets: tuple[str, ...] = field(default=(), repr=False)

    def authorization(self) -> str:
        """The value of the Authorization header, or an empty string. Raises ClusterError if the token cannot be renewed."""
        hook: Callable[[Any], None] | None = self.configuration.refresh_api_key_hook
        if hook:
            with _trouble_with("the credentials"):
                hook(self.configuration)
        keys = self.configuration.api_key
        authorization = str(keys.get("BearerToken") or keys.get("authorization") or "").strip()
        if not _HEADER.fullmatch(authorization):
            raise ClusterError(
                "the token of the credentials holds characters that no HTTP header can carry, such as a line end or a letter "
                f"beyond ASCII: write it anew; {_LOGIN}"
            )
        return authorization

    def secrets(self) -> Iterator[str]:
        """The texts that no message may repeat: the token, passwords, also of proxies, and the private key of the certificate."""
        configuration = self.configuration
        yield from self.named_secrets
        for key in configuration.api_key.values():
            yield from secrets_of(str(key or ""))
        for url in (configuration.host, configuration.proxy):
            yield from secrets_of_url(str(url or ""))
        if configuration.key_file:
            with suppress(OSError, ValueError):
                yield from _keys_in(read_text(Path(str(configuration.key_file)), SECRET))


def secrets_of(authorization: str) -> Iterator[str]:
    """The secrets in the value of an Authorization header: the token, or user and password as they are sent and as they are written."""
    scheme, _, sent = authorization.strip().partition(" ")
    yield sent.strip() or scheme
    if scheme.lower() == "basic":
        with suppress(ValueError):
            pair = b64decode(sent, validate=True).decode("utf-8", "replace")
            yield from (pair, pair.partition(":")[2])


def _keys_in(text: str) -> Iterator[str]:
    """The private keys in PEM, without their first and last lines and without line ends; and the end of each, a short line."""
    for key in _PRIVATE_KEY.findall(text):
        lines = key.split()
        yield from ("".join(lines), *lines[-1:])


def _keys_of(user: Json) -> Iterator[str]:
    """The private key in the entry of a user."""
    with suppress(ValueError):
        yield from _keys_in(b64decode(as_text(dig(user, "client-key-data"))).decode())


def _named_secrets(value: Json) -> Iterator[str]:
    """The texts in a document under names of secrets."""
    for key, item in as_object(value).items():
        if isinstance(item, str) and (
            names_secret(key) or (key == "value" and names_secret(as_text(dig(value, "name"))))
        ):
            yield item
        else:
            yield from _named_secrets(item)
    for item in as_list(value):
        yield from _named_secrets(item)


def load_credentials(kubeconfig: str, context: str) -> Credentials:
    """Find the credentials: of a context in the kubeconfig, of KUBECONFIG's files, or of the pod.

    Mirrors client-go's `clientcmd` loading rules. Raises ClusterError when there are none or they cannot be read.
    """
    if kubeconfig and not Path(kubeconfig).expanduser().is_file():
        raise ClusterError(f"there is no kubeconfig {kubeconfig}: check the path given with --kubeconfig")
    paths = kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT
    present = [path for path in paths.split(os.pathsep) if path and Path(path).expanduser().is_file()]
    files = [path for path in present if not _is_empty(Path(path).expanduser())]
    if files:
        plain = plain_kubeconfig(Path(files[0]).expanduser(), context) if len(files) == 1 else None
        return _with(*plain) if plain else _from_files(os.pathsep.join(files), context)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and not kubeconfig:
        return _in_cluster()
    lack = f"the kubeconfig {paths} is empty" if present else f"there is no kubeconfig at {paths}"
    raise ClusterError(
        f"no cluster to scan: {lack}{'' if kubeconfig else ', and this is not a pod'}. "
        "Name one with --kubeconfig or KUBECONFIG, or scan files with --from"
    )


def _is_empty(path: Path) -> bool:
    """Return whether a file has no line but blank ones and comments: kubectl reads it as a kubeconfig without any entry."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return False
    return all(not line.strip() or line.lstrip().startswith("#") or line.rstrip() == "---" for line in lines)


def _official_client() -> tuple[Any, Any]:
    """The client's modules `client` and `config`, without types; imported when needed, because that takes a second."""
    from kubernetes import client, config

    return client, config


def _with(configuration: Any, entries: Entries) -> Credentials:
    _reject_anonymous(entries, configuration)
    user, cluster = dig(entries.user, "user"), dig(entries.cluster, "cluster")
    return Credentials(
        cluster=as_text(dig(entries.context, "context", "cluster")),
        configuration=configuration,
        as_user=as_text(dig(user, "as")),
        as_groups=texts(dig(user, "as-groups")),
        own_proxy=bool(dig(cluster, "proxy-url")),
        uncompressed=dig(cluster, "disable-compression") is True,
        context=as_text(dig(entries.context, "name")),
        named_secrets=(*_named_secrets(user), *_keys_of(user)),
    )


def _in_cluster() -> Credentials:
    if plain := plain_account():
        return Credentials("in-cluster", plain)
    client, loading = _official_client()
    configuration = client.Configuration()
    with _trouble_with("the pod's service account"):
        loading.load_incluster_config(client_configuration=configuration)
    return Credentials("in-cluster", configuration)


def _from_files(paths: str, context: str) -> Credentials:
    client, loading = _official_client()
    configuration = client.Configuration()
    with _trouble_with(f"the kubeconfig {paths}"):
        merged = loading.kube_config.KubeConfigMerger(paths)
        chosen = context or _current_context(merged.config_files)
        _reject_unknown_context(merged.config_files, chosen, paths)
        loader = loading.kube_config.KubeConfigLoader(merged.config, active_context=chosen, config_base_path=None)
        with _logged_messages() as complaints:
            loader.load_and_set(configuration)
        wanted = _named(merged.config_files, "contexts", chosen)
        user = _named(merged.config_files, "users", as_text(dig(wanted, "context", "user")))
        cluster = _named(merged.config_files, "clusters", as_text(dig(wanted, "context", "cluster")))
    _reject_unknown_user(merged.config_files, wanted, paths)
    _reject_failed_plugin(user, configuration, complaints)
    return _with(configuration, Entries(wanted, cluster, user))


def _current_context(files: Mapping[str, Json]) -> str:
    names = (as_text(dig(config, "current-context")) for config in files.values())
    context = next((name for name in names if name), "")
    if not context:
        contexts = _listed(files)
        raise ClusterError(
            f"the kubeconfig {os.pathsep.join(files)} has no current context: name one with --context. The contexts are: {contexts}"
        )
    return context


def _reject_unknown_context(files: Mapping[str, Json], context: str, paths: str) -> None:
    """Raise ClusterError with the names of the contexts if there is none of this name."""
    if _named(files, "contexts", context) is not None:
        return
    alike = did_you_mean(context, sorted(context_names(files.values())))
    raise ClusterError(f"the kubeconfig {paths} has no context {context!r}.{alike} The contexts are: {_listed(files)}")


def _listed(files: Mapping[str, Json]) -> str:
    names = sorted(context_names(files.values()))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}" if names else "none"


def context_names(files: Iterable[Json]) -> set[str]:
    """The names of the contexts of kubeconfig files."""
    items = (item for config in files for item in as_list(dig(config, "contexts")))
    return {name for item in items if (name := as_text(dig(item, "name")))}


def _named(files: Mapping[str, Json], section: str, name: str) -> Json:
    """The first entry with a name in any of the files."""
    for config in files.values():
        for item in as_list(dig(config, section)):
            if dig(item, "name") == name:
                return item
    return None


def _reject_unknown_user(files: Mapping[str, Json], context: Json, paths: str) -> None:
    """Raise ClusterError if a context names a user that no file has: the client would continue without credentials."""
    name = as_text(dig(context, "context", "user"))
    if not name or _named(files, "users", name) is not None:
        return
    users = (as_text(dig(item, "name")) for config in files.values() for item in as_list(dig(config, "users")))
    alike = did_you_mean(name, sorted(filter(None, users)))
    raise ClusterError(
        f'the kubeconfig {paths} has no user "{name}", which its context "{as_text(dig(context, "name"))}" names.{alike} '
        "Correct the context, or choose another with --context"
    )


def _reject_failed_plugin(user: Json, configuration: Any, complaints: list[str]) -> None:
    """Raise ClusterError if a plugin gives no credentials: the client would continue without them."""
    if _has_credentials(configuration):
        return
    name = as_text(dig(user, "name"))
    if command := as_text(dig(user, "user", "exec", "command")):
        # The output of the plugin may contain a credential, and the client quotes all of it.
        why = "it failed, or printed no credentials" if complaints else "it printed none"
        raise ClusterError(
            f"the credential plugin {command} of user {name} gave no credentials: {why}. Run it by itself to see its output"
        )
    if provider := as_text(dig(user, "user", "auth-provider", "name")):
        raise ClusterError(
            f"the auth-provider {provider} of user {name} gave no usable token. Log in again, or give the user a credential "
            "plugin (exec), a token or a client certificate"
        )


def _reject_anonymous(entries: Entries, configuration: Any) -> None:
    """Raise ClusterError if requests over TLS would have no credentials. A local proxy without TLS adds its own."""
    if _has_credentials(configuration) or not str(configuration.host).startswith("https"):
        return
    context, user = as_text(dig(entries.context, "name")), as_text(dig(entries.user, "name"))
    lacking = f'user "{user}" has no credentials' if user else "it names no user"
    raise ClusterError(
        f'requests in context "{context}" of the kubeconfig would be anonymous: {lacking}. Log in, or choose another context '
        "with --context"
    )


def _has_credentials(configuration: Any) -> bool:
    tokens = (str(value or "").removeprefix("Bearer").strip() for value in configuration.api_key.values())
    return any(tokens) or bool(configuration.cert_file)


@contextmanager
def _logged_messages() -> Iterator[list[str]]:
    """Collects the messages that the client only logs."""
    messages: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(" ".join(record.getMessage().split()))

    listener = Listener(logging.ERROR)
    logging.getLogger().addHandler(listener)
    try:
        yield messages
    finally:
        logging.getLogger().removeHandler(listener)


@contextmanager
def _trouble_with(what: str) -> Iterator[None]:
    """Raise the various errors that the client raises on invalid input as ClusterError."""
    import yaml  # the client's own parser, for its errors
    from kubernetes.config import ConfigException

    odd = (ConfigException, yaml.YAMLError, OSError, KeyError, TypeError, AttributeError, ValueError)
    try:
        yield
    except odd as error:
        raise ClusterError(f"cannot use {what}: {_reason_of(error)}; {_LOGIN}") from error


def _reason_of(error: Exception) -> str:
    """The reason of an error of the client, without values of the file: its own message prints the whole entry, with its token."""
    import yaml
    from kubernetes.config import ConfigException

    match error:
        case yaml.MarkedYAMLError():
            mark = error.problem_mark or error.context_mark
            where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
            return f"{where}{problem_of(error)}"
        case OSError() if error.strerror:
            return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        case ConfigException():
            return " ".join(_ENTRY.sub("an entry", str(error)).split())
        case UnicodeDecodeError():
            return "it is no text in UTF-8"
        case _:
            return f"an entry has not the form of a kubeconfig ({type(error).__name__})"

"""The address of the cluster and the credentials: from a kubeconfig or a pod's service account.

Source of truth: client-go's loading rules. Of several files the first with a setting wins. Missing and empty files are ignored
unless the user named them, and the pod's own credentials are used only without any file. Unlike client-go, no request is sent
over TLS without credentials: an anonymous scan would find nothing, and advise rights for everybody.

One reader finds the entries and their credentials. The settings of simple ones are made from them at once; the official client reads
all others when every file is read, and every credential is there: it starts no program, renews no login and opens no file but the
certificates, which were read before.
"""

from __future__ import annotations

import base64
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from scanner.audit.sensitive_fields import names_secret
from scanner.cluster import yaml
from scanner.cluster.requests.credential_expiry import find_expiry, read_token_expiry
from scanner.cluster.requests.simple_kubeconfig import (
    SERVICE_ACCOUNT,
    Entries,
    make_token_hook,
    read_service_account,
    read_simple_settings,
)
from scanner.errors import ClusterError, InvalidKubeconfig
from scanner.files import SECRET, SETTINGS, read_file, read_text
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts
from scanner.model.nearest import did_you_mean
from scanner.model.urls import secrets_of_url

PLUGIN_SECONDS: Final = 60.0
"""The time of a credential plugin without a request timeout."""
_DEFAULT: Final = "~/.kube/config"
_ENTRY: Final = re.compile(r"\S*\{.*", re.DOTALL)
_HEADER: Final = re.compile(r"[\x20-\x7e]*")
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END", re.DOTALL)
_SHOWN: Final = 20
_SOURCES: Final = ("auth-provider", "tokenFile", "exec")
_SELDOM: Final = 60.0
_FILES: Final = {"cluster": ("certificate-authority",), "user": ("client-certificate", "client-key", "tokenFile")}
_LOGIN: Final = "check it with `kubectl config view`, or name another with --kubeconfig or --context"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The settings for one cluster.

    `configuration` is the official client's or has the same fields; in a pod its refresh hook reads the token again. `as_user` and
    `as_groups` are the impersonation in the kubeconfig. `own_proxy` is true for a proxy from the kubeconfig, not from the environment,
    `uncompressed` if the kubeconfig disables compression. `context` is empty in a pod. After `lifetime` seconds, infinite if unknown,
    the credentials are to be loaded again. `valid_until` is the Unix time at which the client certificate or the token in the
    kubeconfig expires, None if unknown. `named_secrets` are the values in the user's entry under names of secrets.
    """

    cluster: str
    configuration: Any
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    own_proxy: bool = False
    uncompressed: bool = False
    context: str = ""
    lifetime: float = math.inf
    valid_until: int | None = None
    named_secrets: tuple[str, ...] = field(default=(), repr=False)

    def get_authorization(self) -> str:
        """The value of the Authorization header, or an empty string. Raises ClusterError for a token that no header can carry."""
        hook: Callable[[Any], None] | None = self.configuration.refresh_api_key_hook
        if hook:
            hook(self.configuration)
        keys = self.configuration.api_key
        authorization = str(keys.get("BearerToken") or keys.get("authorization") or "").strip()
        if not _HEADER.fullmatch(authorization):
            raise InvalidKubeconfig(
                "the token of the credentials holds characters that no HTTP header can carry, such as a line end or a letter "
                f"beyond ASCII: write it anew; {_LOGIN}"
            )
        return authorization

    def list_secrets(self) -> Iterator[str]:
        """The texts that no message may repeat: the token, passwords, also of proxies, and the private key of the certificate."""
        configuration = self.configuration
        yield from self.named_secrets
        for key in configuration.api_key.values():
            yield from list_secrets(str(key or ""))
        for url in (configuration.host, configuration.proxy):
            yield from secrets_of_url(str(url or ""))
        if configuration.key_file:
            with suppress(OSError, ValueError):
                yield from _find_keys(read_text(Path(str(configuration.key_file)), SECRET))


def list_secrets(authorization: str) -> Iterator[str]:
    """The secrets in the value of an Authorization header: the token, or user and password as they are sent and as they are written."""
    scheme, _, sent = authorization.strip().partition(" ")
    yield sent.strip() or scheme
    if scheme.lower() == "basic":
        with suppress(ValueError):
            pair = base64.b64decode(sent, validate=True).decode("utf-8", "replace")
            yield from (pair, pair.partition(":")[2])


def _find_keys(text: str) -> Iterator[str]:
    """The private keys in PEM, without their first and last lines and without line ends; and the end of each, a short line."""
    for key in _PRIVATE_KEY.findall(text):
        lines = key.split()
        yield from ("".join(lines), *lines[-1:])


def _find_keys_of_user(user: Json) -> Iterator[str]:
    """The private key in the entry of a user."""
    with suppress(ValueError):
        yield from _find_keys(base64.b64decode(as_text(dig(user, "client-key-data"))).decode())


def _find_named_secrets(value: Json) -> Iterator[str]:
    """The texts in a document under names of secrets."""
    for key, item in as_object(value).items():
        if isinstance(item, str) and (
            names_secret(key) or (key == "value" and names_secret(as_text(dig(value, "name"))))
        ):
            yield item
        else:
            yield from _find_named_secrets(item)
    for item in as_list(value):
        yield from _find_named_secrets(item)


def load_credentials(kubeconfig: str, context: str, *, seconds: float = PLUGIN_SECONDS) -> Credentials:
    """Find the credentials: of a context in the kubeconfig, of KUBECONFIG's files, or of the pod.

    Mirrors client-go's `clientcmd` loading rules. A credential plugin has so many seconds. Raises ClusterError when there are no
    credentials or they cannot be read.
    """
    if kubeconfig and not _find_path(kubeconfig):
        raise InvalidKubeconfig(f"there is no kubeconfig {kubeconfig}: check the path given with --kubeconfig")
    paths = kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT
    present = [existing for path in paths.split(os.pathsep) if path and (existing := _find_path(path))]
    text_by_path = {path: text for path in present if not _is_empty(text := _read_kubeconfig(path))}
    if text_by_path:
        return _load_from_files({path: _parse(path, text) for path, text in text_by_path.items()}, context, seconds)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and not kubeconfig:
        return _load_from_pod()
    lack = f"the kubeconfig {paths} is empty" if present else f"there is no kubeconfig at {paths}"
    raise InvalidKubeconfig(
        f"no cluster to scan: {lack}{'' if kubeconfig else ', and this is not a pod'}. "
        "Name one with --kubeconfig or KUBECONFIG, or scan files with --from"
    )


def _find_path(path: str) -> Path | None:
    """The path with the home folder in the place of a tilde, or None if there is nothing that this user can see."""
    expanded = os.path.expanduser(path)  # noqa: PTH111 - Path.expanduser raises for an unknown user
    return Path(expanded) if os.path.exists(expanded) else None  # noqa: PTH110 - Path.exists raises without permission


def _read_kubeconfig(path: Path) -> str:
    try:
        return read_text(path, SETTINGS)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidKubeconfig(
            f"the kubeconfig {path} cannot be read: {_explain_file_error(error)}. Correct it, or name another with --kubeconfig"
        ) from error


def _explain_file_error(error: OSError | ValueError) -> str:
    """The reason why a file cannot be read, as the end of a sentence."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "it is no text in UTF-8" if isinstance(error, UnicodeDecodeError) else "its name is invalid"


def _parse(path: Path, text: str) -> JsonObject:
    try:
        return as_object(yaml.load(text))
    except yaml.MalformedDocument as error:
        # What the parser reports may quote a token.
        where = f" in line {error.line}, column {error.column}" if error.line else ""
        raise InvalidKubeconfig(f"the kubeconfig {path} cannot be read: it is no valid YAML{where}; {_LOGIN}") from None


def _is_empty(text: str) -> bool:
    """Return whether a file has no line but blank ones and comments: kubectl reads it as a kubeconfig without any entry."""
    return all(
        not line.strip() or line.lstrip().startswith("#") or line.rstrip() == "---" for line in text.splitlines()
    )


def _import_official_client() -> tuple[Any, Any]:
    """The client's modules `client` and `config`, without types; imported when needed, because that takes 0.43 seconds."""
    from kubernetes import client, config

    return client, config


def _make_credentials(configuration: Any, entries: Entries, lifetime: float = math.inf) -> Credentials:
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
        lifetime=lifetime,
        named_secrets=(*_find_named_secrets(user), *_find_keys_of_user(user)),
    )


def _load_from_pod() -> Credentials:
    if settings := read_service_account():
        return Credentials("in-cluster", settings)
    client, loading = _import_official_client()
    configuration = client.Configuration()
    with _convert_client_errors("the pod's service account"):
        loading.load_incluster_config(client_configuration=configuration)
    configuration.refresh_api_key_hook = make_token_hook(SERVICE_ACCOUNT / "token")
    return Credentials("in-cluster", configuration)


_Files = Mapping[Path, JsonObject]


class _KubeconfigEntry(NamedTuple):
    """An entry of a kubeconfig, None if there is none, and the folder to which its paths are relative."""

    item: Json
    folder: Path = Path()


def _load_from_files(files: _Files, context: str, seconds: float) -> Credentials:
    paths = os.pathsep.join(map(str, files))
    context_name = context or _find_current_context(files)
    _reject_unknown_context(files, context_name, paths)
    context_entry = _find_entry(files, "contexts", context_name).item
    cluster = _resolve_files(_find_entry(files, "clusters", as_text(dig(context_entry, "context", "cluster"))))
    user = _find_entry(files, "users", as_text(dig(context_entry, "context", "user")))
    _reject_unknown_user(files, context_entry, paths)
    credentials, lifetime = _resolve_credentials(user, cluster, seconds)
    entries = Entries(context_entry, cluster, credentials)
    configuration = read_simple_settings(entries) or _load_configuration(entries, context_name, paths)
    valid_until = find_expiry(as_object(dig(_resolve_files(user), "user")))
    return replace(_make_credentials(configuration, entries, lifetime), valid_until=valid_until)


def _load_configuration(entries: Entries, context: str, paths: str) -> Any:
    """The official client's configuration, which has embedded certificates in temporary files. Raises ClusterError."""
    client, loading = _import_official_client()
    configuration = client.Configuration()
    with _convert_client_errors(f"the kubeconfig {paths}"):
        loader = loading.kube_config.KubeConfigLoader(
            _make_kubeconfig(entries), active_context=context, config_base_path=""
        )
        loader.load_and_set(configuration)
    configuration.refresh_api_key_hook = None
    return configuration


def _make_kubeconfig(entries: Entries) -> dict[str, object]:
    """The kubeconfig with nothing but these entries."""
    sections = {"contexts": entries.context, "clusters": entries.cluster, "users": entries.user}
    return {name: [] if item is None else [item] for name, item in sections.items()}


def _resolve_credentials(user: _KubeconfigEntry, cluster: Json, seconds: float) -> tuple[Json, float]:
    """The user with a token or certificates in the place of what gives them, and the seconds until they expire.

    Of several sources the first counts, in the order of the official client. Raises ClusterError.
    """
    name, user_entry = as_text(dig(user.item, "name")), _resolve_files(user)
    section = dig(user_entry, "user")
    if not isinstance(section, Mapping):
        return user_entry, math.inf
    fields = {key: value for key, value in section.items() if key not in _SOURCES}
    lifetime = math.inf
    match next((key for key in _SOURCES if section.get(key)), ""):
        case _ if section.get("token"):
            pass
        case "auth-provider":
            fields["token"] = _get_provider_token(as_object(section["auth-provider"]), name)
        case "tokenFile":
            fields["token"] = _read_token(section["tokenFile"], name)
        case "exec":
            printed, lifetime = _run_user_plugin(as_object(section["exec"]), name, user.folder, cluster, seconds)
            fields |= printed
        case _:
            pass
    return {**as_object(user_entry), "user": fields}, lifetime


def _run_user_plugin(
    section: JsonObject, name: str, folder: Path, cluster: Json, seconds: float
) -> tuple[dict[str, Json], float]:
    """The fields of a user for the credentials that a plugin prints, and the seconds until they expire. Raises ClusterError."""
    from scanner.cluster.requests.credential_plugin import PluginFailed, run_plugin

    try:
        printed = run_plugin(section, as_object(dig(cluster, "cluster")), folder, seconds)
    except PluginFailed as why:
        command = as_text(section.get("command"))
        raise ClusterError(
            f"the credential plugin {command} of user {name} gave no credentials: {why}. Run it by itself to see its output"
        ) from None
    texts_by_field = {
        "token": printed.token,
        "client-certificate-data": _encode(printed.certificate),
        "client-key-data": _encode(printed.key),
    }
    # A plugin that prints expired credentials runs once a minute, and not before every request.
    return {field: text for field, text in texts_by_field.items() if text}, max(printed.lifetime, _SELDOM)


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _get_provider_token(provider: JsonObject, name: str) -> str:
    """The ID token of an OpenID Connect provider, which is the only one that kubectl still knows. Raises ClusterError.

    It is not renewed: most providers accept a refresh token once, so that kubectl could not renew it any more.
    """
    token = as_text(dig(provider, "config", "id-token")) if provider.get("name") == "oidc" else ""
    expires = read_token_expiry(token)
    if expires is None:
        raise InvalidKubeconfig(
            f"the auth-provider {as_text(provider.get('name'))} of user {name} gave no usable token. Log in again, or give the user a "
            "credential plugin (exec), a token or a client certificate"
        )
    if expires <= time.time():
        raise InvalidKubeconfig(
            f"the token of the auth-provider oidc of user {name} has expired, and a scan renews none. Renew it with `kubectl version` "
            "in this context, or give the user a credential plugin (exec)"
        )
    return token


def _read_token(path: Json, name: str) -> str:
    try:
        return read_text(Path(as_text(path)), SECRET).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidKubeconfig(
            f"the tokenFile {path} of user {name} cannot be read: {_explain_file_error(error)}. Correct the kubeconfig"
        ) from error


def _resolve_files(entry: _KubeconfigEntry) -> Json:
    """An entry with the absolute paths of its files, each of which is a regular file of a limited size. Raises ClusterError."""
    kind = next((kind for kind in _FILES if isinstance(dig(entry.item, kind), Mapping)), "")
    if not kind:
        return entry.item
    section = as_object(dig(entry.item, kind))
    paths: dict[str, Json] = {}
    for key in _FILES[kind]:
        value = section.get(key)
        if not isinstance(value, str) or not value or section.get(f"{key}-data"):
            continue
        path = entry.folder / value
        try:
            read_file(path, SETTINGS)
        except (OSError, ValueError) as error:
            owner = f"{kind} {as_text(dig(entry.item, 'name'))}"
            raise InvalidKubeconfig(
                f"the {key} {path} of {owner} cannot be read: {_explain_file_error(error)}. Correct the kubeconfig"
            ) from error
        paths[key] = str(path)
    return {**as_object(entry.item), kind: {**section, **paths}}


def _find_current_context(files: _Files) -> str:
    names = (as_text(dig(config, "current-context")) for config in files.values())
    context = next((name for name in names if name), "")
    if not context:
        contexts = _write_contexts(files)
        raise InvalidKubeconfig(
            f"the kubeconfig {os.pathsep.join(map(str, files))} has no current context: name one with --context. "
            f"The contexts are: {contexts}"
        )
    return context


def _reject_unknown_context(files: _Files, context: str, paths: str) -> None:
    """Raise ClusterError with the names of the contexts if there is none of this name."""
    if _find_entry(files, "contexts", context).item is not None:
        return
    alike = did_you_mean(context, sorted(list_contexts(files.values())))
    raise InvalidKubeconfig(
        f"the kubeconfig {paths} has no context {context!r}.{alike} The contexts are: {_write_contexts(files)}"
    )


def _write_contexts(files: _Files) -> str:
    names = sorted(list_contexts(files.values()))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}" if names else "none"


def list_contexts(files: Iterable[Json]) -> set[str]:
    """The names of the contexts of kubeconfig files."""
    items = (item for config in files for item in as_list(dig(config, "contexts")))
    return {name for item in items if (name := as_text(dig(item, "name")))}


def _find_entry(files: _Files, section: str, name: str) -> _KubeconfigEntry:
    """The first entry with a name in any of the files."""
    for path, config in files.items():
        for item in as_list(dig(config, section)):
            if dig(item, "name") == name:
                return _KubeconfigEntry(item, path.absolute().parent)
    return _KubeconfigEntry(None)


def _reject_unknown_user(files: _Files, context: Json, paths: str) -> None:
    """Raise ClusterError if a context names a user that no file has: the client would continue without credentials."""
    name = as_text(dig(context, "context", "user"))
    if not name or _find_entry(files, "users", name).item is not None:
        return
    users = (as_text(dig(item, "name")) for config in files.values() for item in as_list(dig(config, "users")))
    alike = did_you_mean(name, sorted(filter(None, users)))
    raise InvalidKubeconfig(
        f'the kubeconfig {paths} has no user "{name}", which its context "{as_text(dig(context, "name"))}" names.{alike} '
        "Correct the context, or choose another with --context"
    )


def _reject_anonymous(entries: Entries, configuration: Any) -> None:
    """Raise ClusterError if requests over TLS would have no credentials. A local proxy without TLS adds its own."""
    if _has_credentials(configuration) or not str(configuration.host).startswith("https"):
        return
    context, user = as_text(dig(entries.context, "name")), as_text(dig(entries.user, "name"))
    lacking = f'user "{user}" has no credentials' if user else "it names no user"
    raise InvalidKubeconfig(
        f'requests in context "{context}" of the kubeconfig would be anonymous: {lacking}. Log in, or choose another context '
        "with --context"
    )


def _has_credentials(configuration: Any) -> bool:
    tokens = (str(value or "").removeprefix("Bearer").strip() for value in configuration.api_key.values())
    return any(tokens) or bool(configuration.cert_file)


@contextmanager
def _convert_client_errors(what: str) -> Iterator[None]:
    """Raise the various errors that the client raises on invalid input as ClusterError."""
    from kubernetes.config import ConfigException

    odd = (ConfigException, OSError, KeyError, TypeError, AttributeError, ValueError)
    try:
        yield
    except odd as error:
        raise InvalidKubeconfig(f"cannot use {what}: {_explain_client_error(error)}; {_LOGIN}") from error


def _explain_client_error(error: Exception) -> str:
    """The reason of an error of the client, without values of the file: its own message prints the whole entry, with its token."""
    from kubernetes.config import ConfigException

    match error:
        case OSError() if error.strerror:
            return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        case ConfigException():
            return " ".join(_ENTRY.sub("an entry", str(error)).split())
        case UnicodeDecodeError():
            return "it is no text in UTF-8"
        case _:
            return f"an entry has not the form of a kubeconfig ({type(error).__name__})"

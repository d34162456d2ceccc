"""Runs the credential plugin that a user of a kubeconfig names (`exec`), with limits on its time, output and children.

Source of truth: `plugin/pkg/client/auth/exec` of client-go. Unlike kubectl, a scan gives a plugin no terminal and no input, reads at
most `MOST` bytes of its output, and ends it after the request timeout together with every process that it has started. What a plugin
prints may be a credential, so no message repeats it.
"""

from __future__ import annotations

import atexit
import base64
import math
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Final

import orjson

from scanner.cluster.requests.limits import Deadline
from scanner.files import SETTINGS, read_file
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig

MOST: Final = 1 << 20
"""The most bytes that a plugin may print. A token has a few thousand, a certificate with its key some ten thousand."""
_GROUP: Final = "client.authentication.k8s.io/"
_EXTENSION: Final = f"{_GROUP}exec"
_MARK: Final = "ASSAY_CREDENTIAL_PLUGIN"
_PAUSE: Final = 0.01
_UNTIL_ENDED: Final = 5.0
_INTERRUPTED: Final = "it was interrupted"
_ROUNDS: Final = 50
_PART: Final = 1 << 16
_ENVIRONMENT: Final = 8 << 20


class PluginFailed(Exception):
    """A plugin gave no credentials; the message continues a sentence about the plugin."""


@dataclass(frozen=True, slots=True)
class PluginCredentials:
    """The credentials that a plugin printed, and the seconds until they expire; infinite if they do not."""

    token: str = ""
    certificate: str = ""
    key: str = ""
    lifetime: float = math.inf


def run_plugin(section: JsonObject, cluster: JsonObject, folder: Path, seconds: float) -> PluginCredentials:
    """Run the plugin of an `exec` section within so many seconds, in the folder of its kubeconfig. Raises PluginFailed."""
    version = as_text(section.get("apiVersion"))
    if not version.startswith(_GROUP):
        raise PluginFailed(f"its apiVersion in the kubeconfig is not {_GROUP}v1")
    if section.get("interactiveMode") == "Always":
        raise PluginFailed("it needs a terminal (interactiveMode: Always), which a scan does not have")
    information: dict[str, Json] = {"interactive": False}
    if section.get("provideClusterInfo") is True:
        information["cluster"] = _describe_cluster(cluster)
    document: JsonObject = {"apiVersion": version, "kind": "ExecCredential", "spec": information}
    environment = {**os.environ, **_make_environment(section), "KUBERNETES_EXEC_INFO": orjson.dumps(document).decode()}
    return _read_credentials(_run(_list_arguments(section), environment, folder, seconds), version)


def _list_arguments(section: JsonObject) -> tuple[str, ...]:
    arguments = (section.get("command"), *as_list(section.get("args")))
    if not all(isinstance(argument, str) for argument in arguments) or not section.get("command"):
        raise PluginFailed("its command and args in the kubeconfig are not texts")
    return tuple(map(as_text, arguments))


def _make_environment(section: JsonObject) -> dict[str, str]:
    variables = [(dig(item, "name"), dig(item, "value")) for item in as_list(section.get("env"))]
    if not all(isinstance(text, str) for variable in variables for text in variable):
        raise PluginFailed("a variable of its env in the kubeconfig has no name, or a value that is no text")
    return {as_text(name): as_text(value) for name, value in variables}


def _describe_cluster(cluster: JsonObject) -> JsonObject:
    """The cluster as a plugin that wants it reads it (`ConfigToExecCluster`): with the certificates, and not their file."""
    fields = {name: value for name, value in cluster.items() if name not in ("extensions", "certificate-authority")}
    authority = as_text(cluster.get("certificate-authority"))
    if authority and "certificate-authority-data" not in cluster:
        with suppress(OSError):
            fields["certificate-authority-data"] = base64.b64encode(read_file(Path(authority), SETTINGS)).decode()
    extensions = (item for item in as_list(cluster.get("extensions")) if dig(item, "name") == _EXTENSION)
    return {**fields, **({"config": dig(extension, "extension")} if (extension := next(extensions, None)) else {})}


def _read_credentials(output: bytes, version: str) -> PluginCredentials:
    try:
        document = as_object(orjson.loads(output))
    except orjson.JSONDecodeError:
        document = {}
    if (document.get("kind"), document.get("apiVersion")) != ("ExecCredential", version):
        raise PluginFailed(f"it printed no ExecCredential of {version} in JSON")
    status = as_object(document.get("status"))
    token, certificate, key = (
        as_text(status.get(name)) for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if bool(certificate) != bool(key) or not (token.strip() or certificate):
        raise PluginFailed("it printed no credentials: a token, or a client certificate and its key")
    return PluginCredentials(token, certificate, key, _count_seconds_until(status.get("expirationTimestamp")))


def _count_seconds_until(moment: Json) -> float:
    """The seconds until an expirationTimestamp. Raises PluginFailed for a text that is no time."""
    if moment is None:
        return math.inf
    try:
        expires = datetime.fromisoformat(as_text(moment))
        return (expires - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        raise PluginFailed("its expirationTimestamp is no time with a time zone") from None


@dataclass(frozen=True, slots=True)
class _Processes:
    """The processes of a run: its process group, and by their environment those that have left the group."""

    group: int
    mark: str

    def end(self) -> None:
        """Kill all of them, and those that they start meanwhile."""
        for _ in range(_ROUNDS):
            with suppress(OSError):
                os.killpg(self.group, signal.SIGKILL)
            detached = tuple(self._find_detached())
            if not detached:
                return
            for number in detached:
                with suppress(OSError):
                    os.kill(number, signal.SIGKILL)
            time.sleep(_PAUSE)

    def _find_detached(self) -> Iterator[int]:
        """The processes with the mark of this run, where the operating system shows environments (Linux)."""
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError), (folder / "environ").open("rb") as file:
                if self.mark.encode() in file.read(_ENVIRONMENT):
                    yield int(folder.name)


_RUNNING: Final[set[_Processes]] = set()
_ENDING: Final = Event()


@atexit.register
def _end_running() -> None:
    """End the plugins for which a thread still waits when the program ends, as after a signal."""
    _ENDING.set()
    for processes in tuple(_RUNNING):
        processes.end()


def _run(arguments: tuple[str, ...], environment: Mapping[str, str], folder: Path, seconds: float) -> bytes:
    """The output of a program that ends in time with exit code 0. Raises PluginFailed.

    It runs in a thread: a signal interrupts the main thread anywhere, also between the start of a program and the note that it runs.
    """
    run = _PluginRun(arguments, environment, folder, seconds)
    thread = Thread(target=run.make, daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            # Python handles a signal in this thread, which does not wake up if the kernel gave the signal to the other one.
            thread.join(_PAUSE)
    finally:
        run.stopped.set()
        thread.join(_UNTIL_ENDED)
    return run.get_output()


class _PluginRun:
    """One run of a program, until `stopped` is set."""

    def __init__(
        self, arguments: tuple[str, ...], environment: Mapping[str, str], folder: Path, seconds: float
    ) -> None:
        self._arguments, self._folder, self._seconds = arguments, folder, seconds
        self._mark = f"{_MARK}={secrets.token_hex(16)}"
        self._environment = {**environment, _MARK: self._mark.partition("=")[2]}
        self._result: bytes | Exception = PluginFailed(_INTERRUPTED)
        self.stopped = Event()

    def get_output(self) -> bytes:
        """The output of the program. Raises PluginFailed."""
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def make(self) -> None:
        """Run the program, and end all of its processes."""
        try:
            self._result = self._run_program()
        except Exception as error:  # noqa: BLE001 - `output` raises it in the thread that waits
            self._result = error

    def _run_program(self) -> bytes:
        if self.stopped.is_set() or _ENDING.is_set():
            raise PluginFailed(_INTERRUPTED)
        try:
            process = subprocess.Popen(  # noqa: S603 - the program that the user's kubeconfig names
                self._arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self._folder,
                env=self._environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "its name is invalid"
            raise PluginFailed(f"it cannot be started ({why})") from None
        processes = _Processes(process.pid, self._mark)
        _RUNNING.add(processes)
        try:
            output = self._read_output(process)
        finally:
            processes.end()
            _close(process)
            _RUNNING.discard(processes)
        if process.returncode:
            raise PluginFailed("it failed")
        return output

    def _read_output(self, process: subprocess.Popen[bytes]) -> bytes:
        """Everything that the program prints until it ends; children may keep its output open after that."""
        if process.stdout is None:
            raise TypeError
        deadline, output, number = Deadline(self._seconds), bytearray(), process.stdout.fileno()
        os.set_blocking(number, False)
        while True:
            has_ended = process.poll() is not None
            _read_into(output, number)
            if len(output) > MOST:
                raise PluginFailed(f"it printed more than {MOST >> 20} MiB, and was stopped")
            if has_ended:
                return bytes(output)
            if not deadline.seconds_left:
                why = f"it did not end within {self._seconds:g} s, and was stopped"
                raise PluginFailed(f"{why}: raise --request-timeout, or make it faster")
            if self.stopped.wait(min(_PAUSE, deadline.seconds_left)):
                raise PluginFailed(_INTERRUPTED)


def _read_into(output: bytearray, number: int) -> None:
    """Read what has been printed so far, up to the limit."""
    with suppress(BlockingIOError):
        while len(output) <= MOST and (part := os.read(number, _PART)):
            output += part


def _close(process: subprocess.Popen[bytes]) -> None:
    """Close the output of a killed program, and collect its exit code; the kernel may end it later."""
    if process.stdout is not None:
        process.stdout.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(1)

"""A process that has the files, the host name and the process numbers of a container.

Linux namespaces make them: the root is an overlay of this machine's files, so that programs need no image, with the volumes
of the container mounted at their paths. The process has number 1, so the kernel ends its children with it. The network is
that of the machine.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.integration.processes import ending_with_parent

REPOSITORY = Path(__file__).parents[3]
MAKE_ROOT = r"""
set -e
scratch=$1 host_name=$2 volumes=$3 commands=$4
echo "$host_name" >/proc/sys/kernel/hostname
mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch/changes" "$scratch/work" "$scratch/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/changes,workdir=$scratch/work" "$scratch/root"
shift 4
for path in "$@"; do mkdir -p "$scratch/root$path"; mount --rbind "$path" "$scratch/root$path"; done
cd "$scratch/root"
mount -t proc proc proc
mount -t tmpfs tmpfs dev
for device in null zero full random urandom; do : >"dev/$device"; mount --bind "/dev/$device" "dev/$device"; done
mkdir dev/shm
ln -s /proc/self/fd dev/fd
mount --rbind "$volumes" mnt
exec chroot . /bin/sh -c "$commands"
"""
"""Every path is made below the new root; those of the container are made after `chroot`, so that no link leads out."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of the host at a path of the container; `source` is relative to the folder of the volumes."""

    source: str
    target: str
    is_file: bool = False
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class ContainerProcess:
    """A started container: its process, and the file that its output goes to."""

    process: subprocess.Popen[bytes]
    log: Path

    def exit_code(self) -> int | None:
        """The exit code, 128 plus the number of the signal that ended the process, or None while it runs."""
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the container's first process."""
        for process in _children(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def kill(self) -> None:
        """Kill the container, and wait until it has ended."""
        self.process.kill()
        self.process.wait()


def start(
    command: Sequence[str],
    *,
    variables: Mapping[str, str],
    host_name: str,
    folder: str,
    volumes: Path,
    mounts: Sequence[Mount],
    read_only: bool,
    scratch: Path,
) -> ContainerProcess:
    """Start a command. `volumes` holds the sources of `mounts`, `scratch` is an empty folder beside which the log is written."""
    log = scratch.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *_isolated(),
                str(scratch),
                host_name,
                str(volumes),
                _inside(command, folder, mounts, read_only=read_only),
                *_elsewhere(),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(variables),
            cwd="/",
            start_new_session=True,
        )
    return ContainerProcess(process, log)


def why_impossible(folder: Path) -> str:
    """The error of a first container, or an empty string if this machine can run containers."""
    if sys.platform != "linux":
        return "containers need Linux"
    scratch, volumes = folder / "first", folder / "volumes"
    scratch.mkdir()
    volumes.mkdir()
    variables = {"PATH": os.environ["PATH"]}
    container = start(
        ["true"],
        variables=variables,
        host_name="first",
        folder="/",
        volumes=volumes,
        mounts=(),
        read_only=True,
        scratch=scratch,
    )
    code = container.process.wait()
    return "" if code == 0 else container.log.read_text().strip() or f"exit code {code}"


def _isolated() -> list[str]:
    """The command that makes the namespaces; who is not root gets a user namespace, too.

    A shell waits for the container, because `unshare --fork` loses the exit code of a process that is killed.
    """
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    waiting = ["/bin/sh", "-c", '"$@"; exit $?', "sh", *ending_with_parent()]
    namespaces = ["/usr/bin/unshare", *user, "--mount", "--uts", "--pid"]
    return [*ending_with_parent(), *namespaces, *waiting, "/bin/sh", "-c", MAKE_ROOT, "sh"]


def _inside(command: Sequence[str], folder: str, mounts: Sequence[Mount], *, read_only: bool) -> str:
    """The commands below the new root."""
    lines = ["set -e", f"mkdir -p {shlex.quote(folder)}"]
    for mount in sorted(mounts, key=lambda mount: mount.target):
        lines += _mounted(mount)
    lines += ["umount -l /mnt", *(["mount -o remount,ro,bind /"] if read_only else [])]
    return "\n".join([*lines, f"cd {shlex.quote(folder)}", f"exec {shlex.join(command)}"])


def _mounted(mount: Mount) -> Iterator[str]:
    target = shlex.quote(mount.target)
    if mount.is_file:
        yield f"mkdir -p {shlex.quote(os.path.dirname(mount.target))}"  # noqa: PTH120 - a path of the container
        yield f"[ -e {target} ] || : >{target}"
    else:
        yield f"mkdir -p {target}"
    yield f"mount --bind {shlex.quote(f'/mnt/{mount.source}')} {target}"
    if mount.read_only:
        yield f"mount -o remount,ro,bind {target}"


@cache
def _elsewhere() -> list[str]:
    """The folders that hold Python and this repository, if they lie on another file system than the root."""
    root = Path("/").stat().st_dev
    folders = {Path(sys.prefix), Path(sys.base_prefix), REPOSITORY}
    return sorted(str(folder) for folder in folders if folder.stat().st_dev != root)


def _children(process: int) -> list[int]:
    try:
        return [int(number) for number in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []

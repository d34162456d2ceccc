"""A worker process: it reads pages and returns their outcomes until its parent ends."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from scanner.audit.items import digest_page
from scanner.audit.page import PageEvaluator
from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import Kind, Page
from scanner.model.scans.scan import PageResult
from scanner.policies.plan import KindPlan
from scanner.scan.workers.relay import Relay

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

INTERRUPTS: Final = (signal.SIGINT, signal.SIGTERM)
_GARBAGE: Final = 20_000
"""The number of containers at which a process searches for cycles: the memory of decoded pages is freed without it."""

_SET_DEATH_SIGNAL: Final = 1

Pack: TypeAlias = Callable[[PageResult], PageResult]
"""Turns a result into a shorter form for the store, before it is sent to the parent. See `scanner.scan.edges.Store.pack`."""


def evaluate_page(
    page_evaluator: PageEvaluator, page: Page, plan: KindPlan, evaluated: AbstractSet[str] = frozenset()
) -> PageResult:
    """The results of a page, without the objects whose identity is in `evaluated`.

    A bug of Assay becomes a gap: it must neither count as a verdict nor stop the scan.
    """
    try:
        return page_evaluator.evaluate(page, plan, evaluated)
    except Exception as error:  # noqa: BLE001 - see above
        return make_unevaluated(page, f"internal error: {type(error).__name__}; please report it")


def make_unevaluated(page: Page, why: str) -> PageResult:
    """The result of a page that could not be evaluated: no object, and a gap with the reason."""
    where = f"{page.kind.api_version}/{page.kind.kind}"
    gap = Gap(GapKind.OBJECT, where, f"page {page.number} was not evaluated: {why}")
    page_key = page.kind.api_version, page.kind.kind, page.number
    return PageResult(*page_key, objects=0, evaluated=0, gaps=(gap,), digest=digest_page(page))


def serve(
    parent: Connection,
    page_evaluator: PageEvaluator,
    plans: Mapping[Kind, KindPlan],
    relay: Relay,
    others: Iterable[Connection],
    pack: Pack,
) -> NoReturn:
    """Evaluate pages until the parent ends; the parent handles interrupts and writes all output.

    `others` are ends of the parent's connections: a process that keeps them open cannot detect the end of the parent.
    """

    def answer() -> None:
        relay.send_to(parent)
        with suppress(EOFError, OSError):
            while True:
                _answer_parent(parent, page_evaluator, plans, pack)

    serve_parent(answer, others)


def serve_parent(work: Callable[[], None], others: Iterable[Connection]) -> NoReturn:
    """Do the work of a forked process, and end it. See `serve`."""
    code = 1
    try:
        for number in INTERRUPTS:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
        for connection in others:
            connection.close()
        _die_with_parent()
        freeze_heap()
        work()
        code = 0
    finally:
        os._exit(code)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """A block that delays interrupts: a new worker would handle them as its own.

    Python warns of forks beside other threads. Assay runs none here; threads of a program that embeds Assay are its own.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def freeze_heap() -> None:
    """Call gc.freeze(): keep inherited objects out of garbage collection, so that their memory pages stay shared."""
    gc.freeze()
    gc.set_threshold(_GARBAGE)


@contextmanager
def collect_rarely() -> Iterator[None]:
    """A block in which this process collects garbage as rarely as a worker; the former thresholds return at its end."""
    before = gc.get_threshold()
    gc.set_threshold(before[0] and max(before[0], _GARBAGE), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _die_with_parent() -> None:
    """End with the parent if it is killed; on a system without this option the worker detects the closed connection."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def _answer_parent(
    parent: Connection, page_evaluator: PageEvaluator, plans: Mapping[Kind, KindPlan], pack: Pack
) -> None:
    kind, number = parent.recv()
    page = Page(kind, number, parent.recv_bytes())
    result = evaluate_page(page_evaluator, page, plans[kind])
    try:
        parent.send(pack(result))
    except (ValueError, TypeError, AttributeError) as error:
        parent.send(make_unevaluated(page, f"internal error: {type(error).__name__}; please report it"))


# Returns freed memory to the system: the C library would keep the memory of pages of several megabytes.
#
# Source of truth: mallopt(3). By default the first large block that is freed raises the size from which blocks are
# returned to the system, and every thread has a heap of its own. Only Linux is changed.

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_SETTINGS: Final = {_MMAP_THRESHOLD: 512 << 10, _TRIM_THRESHOLD: 256 << 10, _ARENA_MAX: 1}


def return_freed_memory() -> None:
    """Return freed memory to the system from now on."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for setting, value in _SETTINGS.items():
            library.mallopt(setting, value)

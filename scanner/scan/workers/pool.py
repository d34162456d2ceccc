"""Sends pages to workers, and yields their results in the order of the pages.

The workers are forked after every policy is compiled, while no other thread runs: they share all data that the evaluation needs.
Each worker has one page at a time, so a worker that dies loses one page, which another worker evaluates once more. See
`docs/adr/0012-workers-are-forked.md`.
"""

from __future__ import annotations

import gc
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from itertools import repeat
from typing import TYPE_CHECKING, Final, Self, TypeVar

from msgspec import Struct

from scanner.model.resource import Page
from scanner.model.scans.scan import PageResult
from scanner.policies.plan import KindPlan
from scanner.scan.workers.cores import FORKS
from scanner.scan.workers.process import (
    EvaluatesPages,
    Pack,
    delay_interrupts,
    evaluate_page,
    make_unevaluated,
    serve,
)
from scanner.scan.workers.relay import Relay, WorkerRequest

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

T = TypeVar("T")

FORK_AFTER_BYTES: Final = 4 << 20
"""Bytes of pages that this process evaluates faster than it can start another one."""
_ATTEMPTS: Final = 2
_SECONDS: Final = 1.0
"""The time between two beats of this process while it waits for workers."""
_AHEAD: Final = 1
"""Finished pages, besides one for each worker, that may wait for the next page in order."""


class Job(Struct, frozen=True):
    """A page to evaluate, with the policies that may match its kind."""

    page: Page
    plan: KindPlan


class JobResult(Struct, frozen=True):
    """A job and its result."""

    job: Job
    result: PageResult


class _Task(Struct):
    """A job in the queue."""

    job: Job
    result: PageResult | None = None
    deaths: int = 0


class _Worker(Struct):
    """A worker process, as its parent holds it."""

    process: BaseProcess
    connection: Connection
    task: _Task | None = None


class Workers:
    """The processes that evaluate pages; without processes, or for a small input, this process evaluates them."""

    def __init__(
        self,
        page_evaluator: EvaluatesPages,
        plans: Sequence[KindPlan],
        relay: Relay,
        pause: Callable[[], AbstractContextManager[None]],
        *,
        count: int,
        fork_after_bytes: int = 0,
        pack: Pack = lambda result: result,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin without processes; after `fork_after_bytes` bytes of pages fork `count` of them.

        `pause` begins a block in which no other thread runs; `pack` shortens what a process sends. `beat` is called about once a
        second while workers evaluate.
        """
        self._beat = beat
        self._page_evaluator = page_evaluator
        self._plans = {plan.kind: plan for plan in plans}
        self._relay = relay
        self._count = count if count > 1 and FORKS else 0
        self._pause = pause
        self._pack = pack
        self._fork_after_bytes = fork_after_bytes
        self._bytes = 0
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        """Use the workers; they end with the context."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers at once: they hold no data that the parent needs."""
        for worker in self._workers:
            _end(worker)
        self._workers.clear()

    def evaluate_in_order(self, items: Iterable[Job | T]) -> Iterator[JobResult | T]:
        """The items in their order, each job replaced by its result.

        The next item is taken as soon as a process can evaluate it: at most one finished page besides one per process waits.
        """
        queue: deque[_Task | T] = deque()
        jobs = iter(items)
        while (item := self._take_next(jobs, queue)) is not None:
            queue.append(self._start(item) if isinstance(item, Job) else item)
            yield from _take_done(queue)
        yield from _take_done(queue)
        while queue:
            self._wait()
            yield from _take_done(queue)

    def evaluate_page(self, job: Job, evaluated: AbstractSet[str]) -> PageResult:
        """Evaluate a page in this process, without the objects whose identity is in `evaluated`."""
        return evaluate_page(self._page_evaluator, job.page, job.plan, evaluated)

    def _take_next(self, jobs: Iterator[Job | T], queue: deque[_Task | T]) -> Job | T | None:
        """The next item, once a worker has no page and the number of finished pages is within its limit."""
        while self._workers:
            if self._find_idle_worker() and (len(queue) < self._count + _AHEAD or _is_done(queue[0])):
                break
            self._wait()
        return next(jobs, None)

    def _start(self, job: Job) -> _Task:
        """A job that is done, or that a worker has."""
        self._bytes += len(job.page.data)
        if self._count and not self._workers and self._bytes > self._fork_after_bytes:
            self._fork_all()
        idle = self._find_idle_worker()
        if idle is None:
            return _Task(job, self.evaluate_page(job, frozenset()))
        task = _Task(job)
        self._send(idle, task)
        return task

    def _find_idle_worker(self) -> _Worker | None:
        return next((worker for worker in self._workers if worker.task is None), None)

    def _fork_all(self) -> None:
        """Fork the workers; existing objects are kept out of garbage collection, which would copy them."""
        try:
            with self._pause():
                gc.freeze()
                self._workers.extend(self._fork() for _ in repeat(None, self._count))
        except OSError:
            self._count = len(self._workers)

    def _fork(self) -> _Worker:
        """A new worker. Raises OSError if the system has no room for it."""
        import multiprocessing

        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        others = (ours, *(worker.connection for worker in self._workers))
        process = context.Process(
            target=serve,
            args=(theirs, self._page_evaluator, self._plans, self._relay, others, self._pack),
            daemon=True,
        )
        with delay_interrupts(), theirs:
            process.start()
        return _Worker(process, ours)

    def _wait(self) -> None:
        """Wait until a worker sends a message."""
        from multiprocessing.connection import wait

        busy = [worker for worker in self._workers if worker.task]
        while not (ready := wait([worker.connection for worker in busy], _SECONDS)):
            self._beat()
        for worker in busy:
            if worker.connection in ready:
                self._receive(worker)

    def _receive(self, worker: _Worker) -> None:
        try:
            message: PageResult | WorkerRequest = worker.connection.recv()
            if isinstance(message, WorkerRequest):
                worker.connection.send(self._relay.reply(message))
                return
        except (EOFError, OSError):
            self._replace(worker)
            return
        if worker.task:
            worker.task.result = message
        worker.task = None

    def _send(self, worker: _Worker, task: _Task) -> None:
        worker.task = task
        page = task.job.page
        try:
            worker.connection.send((page.kind, page.number))
            worker.connection.send_bytes(page.data)
        except OSError:
            self._replace(worker)

    def _replace(self, worker: _Worker) -> None:
        """Replace a worker that died, and give its page to another one; a page with which two workers died is a gap."""
        why = _end(worker)
        self._workers.remove(worker)
        try:
            with self._pause():
                self._workers.append(another := self._fork())
        except OSError:
            self._count = len(self._workers)
            another = None
        task = worker.task
        if task is None:
            return
        task.deaths += 1
        if another and task.deaths < _ATTEMPTS:
            self._send(another, task)
        else:
            task.result = make_unevaluated(
                task.job.page, f"the process that evaluated it ended before the page was complete ({why})"
            )


def _take_done(queue: deque[_Task | T]) -> Iterator[JobResult | T]:
    while queue and _is_done(queue[0]):
        item = queue.popleft()
        if not isinstance(item, _Task):
            yield item
        elif item.result:
            yield JobResult(item.job, item.result)


def _is_done(item: object) -> bool:
    return not isinstance(item, _Task) or item.result is not None


def _end(worker: _Worker) -> str:
    """End a worker if it still runs; return how it ended."""
    worker.connection.close()
    worker.process.kill()
    worker.process.join()
    code = worker.process.exitcode or 0
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"

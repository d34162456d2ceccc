"""Evaluation on several cores: processes evaluate raw pages, and their results return in the order of the pages."""

from scanner.scan.workers.cores import FORKS, count_cores
from scanner.scan.workers.pool import FORK_AFTER_BYTES, Job, JobResult, Workers
from scanner.scan.workers.process import collect_rarely, return_freed_memory
from scanner.scan.workers.relay import Relay

__all__ = [
    "FORKS",
    "FORK_AFTER_BYTES",
    "Job",
    "JobResult",
    "Relay",
    "Workers",
    "collect_rarely",
    "count_cores",
    "return_freed_memory",
]

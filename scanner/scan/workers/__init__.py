"""The line on several cores: raw pages go to processes that judge them, and what they find comes back in order."""

from scanner.scan.workers.cores import cores
from scanner.scan.workers.heap import return_freed_memory
from scanner.scan.workers.pool import LITTLE, Job, Judged, Workers
from scanner.scan.workers.process import rare_collections
from scanner.scan.workers.relay import Relay

__all__ = ["LITTLE", "Job", "Judged", "Relay", "Workers", "cores", "rare_collections", "return_freed_memory"]

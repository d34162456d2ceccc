"""The line on several cores: raw pages go to processes that judge them, and what they find comes back in order."""

from scanner.workers.cores import cores
from scanner.workers.heap import return_freed_memory
from scanner.workers.line import LITTLE, Job, Judged, Workers
from scanner.workers.relay import Relay

__all__ = ["LITTLE", "Job", "Judged", "Relay", "Workers", "cores", "return_freed_memory"]

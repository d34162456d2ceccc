"""Does the server say what Assay says? Verdicts replayed as dry-run writes, and the two answers compared.

One file for each step: `copies` makes what is written, `verdicts` what the server should then say, `answers` reads what
it says, `compare` lays one beside the other, and `replay` does it for a sample of a cluster's objects.
"""

from scanner.parity.answers import Said
from scanner.parity.compare import Difference
from scanner.parity.replay import Parity, Writer, verify

__all__ = ["Difference", "Parity", "Said", "Writer", "verify"]

"""`python -m tests.integration.fuzz`: mutating policies by the thousand, on a real API server and by Assay.

Every class of differences is printed with its simplest example. Exit code 1 when an outcome differs, or the words of more
than one refusal in a hundred. The same seed makes the same policies.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.integration.fuzz.report import report
from tests.integration.fuzz.run import Fuzz, unaccepted
from tests.integration.fuzz.stage import staged
from tests.requirements import API_SERVER

PARTS = ("patches", "configurations", "versions", "sets")


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.integration.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="by default the time of day")
    parser.add_argument("--objects", type=int, default=None, help="how many of the objects, by default all")
    parser.add_argument("--seconds", type=float, default=3600, help="the longest time that it may take")
    parser.add_argument("--share", type=float, default=1.0, help="which part of all patches")
    parser.add_argument("--each", type=int, default=40, help="how many configurations of each object")
    parser.add_argument("--sets", type=int, default=8, help="how many sets of policies for each object")
    parser.add_argument("--only", default="", help="take only objects of this kind")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to compare")
    arguments = parser.parse_args()
    assets = API_SERVER.place()
    if not assets:
        sys.stderr.write("there is no kube-apiserver: KUBEBUILDER_ASSETS is not set; make one with: make apiserver\n")
        return 2
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    with tempfile.TemporaryDirectory() as directory, staged(Path(assets), Path(directory)) as stage:
        chance = Random(seed)
        fuzz = Fuzz(stage, chance, time.monotonic() + arguments.seconds)
        sys.stdout.writelines(f"{line}\n" for line in unaccepted(stage))
        choice = [stored for stored in stage.objects if arguments.only in ("", stored.document["kind"])]
        objects = chance.sample(choice, min(len(choice), arguments.objects or len(choice)))
        begun = time.monotonic()
        if "configurations" in arguments.parts:
            fuzz.configured(objects, arguments.each)
        if "versions" in arguments.parts:
            fuzz.versioned(objects, arguments.each)
        if "sets" in arguments.parts:
            fuzz.together(objects, arguments.sets)
        if "patches" in arguments.parts:
            fuzz.patched(objects, arguments.share)
        sys.stdout.write(f"{report(fuzz.tally)}\nseed {seed}, {time.monotonic() - begun:.0f} s\n")
    return 0 if fuzz.tally.is_right else 1


if __name__ == "__main__":
    sys.exit(main())

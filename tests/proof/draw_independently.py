"""Draw the sample of a `population.csv` again, with the standard library alone, from the rule in `docs/evidence.md`."""

import csv
import hashlib
import io
import sys
from pathlib import Path


def draw(data: bytes, seed: str, items: int, id_columns: list[str], strata: list[str]) -> list[str]:
    """The ids of the sample, in the order of their digests."""
    start = f"{seed}\n{hashlib.sha256(data).hexdigest()}\n"
    groups: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for row in csv.DictReader(io.StringIO(data.decode(), newline="")):
        item = "/".join(row[name] for name in id_columns)
        digest = hashlib.sha256((start + item).encode()).hexdigest()
        groups.setdefault(tuple(row[name] for name in strata), []).append((digest, item))
    total, names = sum(map(len, groups.values())), sorted(groups)
    seats, others = min(items, total) - len(names), max(1, total - len(names))
    whole = {name: seats * (len(groups[name]) - 1) // others for name in names}
    most = sorted(names, key=lambda name: -(seats * (len(groups[name]) - 1) % others))[: seats - sum(whole.values())]
    drawn = [item for name in names for item in sorted(groups[name])[: 1 + whole[name] + (name in most)]]
    return [item for _, item in sorted(drawn)]


if __name__ == "__main__":
    file, text, number, *columns = sys.argv[1:]
    names, strata = ([name for name in each.split(",") if name] for each in columns)
    sys.stdout.write("\n".join(draw(Path(file).read_bytes(), text, int(number), names, strata)))

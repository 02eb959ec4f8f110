"""Make tests/data/*.json from the authors' published scores: ISOCOST_DATA names their folder.

The files themselves are not part of the project; their tallies are.
"""

import os
from pathlib import Path

import isocost as ic

NAMES = ("income", "health", "criminal_recidivism")


def main() -> None:
    source = Path(os.environ["ISOCOST_DATA"]) / "scored"
    target = Path(__file__).parent.parent / "tests" / "data"
    for name in NAMES:
        tally = ic.tally(source / f"{name}.csv", score="prediction")
        tally.save(target / f"{name}.json")
        print(f"{name}: {tally.n:.0f} rows, {len(tally.cells)} cells")


if __name__ == "__main__":
    main()

"""Releases with relations and without: ``python tests/benchmarks/relations.py [--rows N] [--epsilon E]``.

Of three made tables (`tests/registers.py`): the mean total variation distance of tables of two columns, over
three releases each, by a schema that states the relations and by the same one without them; and how many rows
of a release without them break a relation. Goal: no row breaks one, and the distance is no larger.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from registers import REGISTERS, distance


def main() -> None:
    """Print the distances."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rows", type=int, default=5000)
    options.add_argument("--epsilon", default="1")
    options.add_argument("--releases", type=int, default=3)
    given = options.parse_args()
    print("| table | without relations | with | rows that break one, without | with | goals met |")
    print("|---|---|---|---|---|---|")
    for name, register in REGISTERS.items():
        told = [
            distance(register, given.rows, given.epsilon, related, given.releases)
            for related in (False, True)
        ]
        met = "yes" if told[1][0] <= told[0][0] and told[1][1] == 0 else "NO"
        print(f"| {name} | {told[0][0]:.4f} | {told[1][0]:.4f} | {told[0][1]:,} | {told[1][1]} | {met} |")


if __name__ == "__main__":
    main()

"""How far rejection goes: for each size of tables of many shapes, the largest c that is done in time.

    python tests/benchmarks/frontier.py         # hours; a line alone takes minutes
    python tests/benchmarks/frontier.py --attributes 14 --rows 20 --limit 60 --data FILE

c = epsilon n / (2 m) is the nats that a unit of answer count costs; n is 2 m c, so epsilon is 1. Done means:
build and one draw within the limit of processor seconds, after compilation. A kind of table is raised along
the list of c until it is not done. What is accepted for it stands in `smalldb/rejection/mechanism.py`.
"""

import argparse
import signal
import time
from fractions import Fraction

import numpy as np
import pandas as pd

from queries import Domain, Rows
from queries.spec import parse
from smalldb.exact.bits import SeededBits
from smalldb.rejection.sampler import tuple_sampler

COST = (10, 15, 20, 25, 30, 40, 60, 100, 250)
SIZES = (6, 8, 10, 14, 24, 48)


def latent(draws, d, n):
    """Three classes of rows, each with its own rates."""
    rates = draws.uniform(0.1, 0.9, (3, d))
    return draws.random((n, d)) < rates[draws.integers(0, 3, n)]


def chain(draws, d, n):
    """Each attribute is its neighbour's in most rows."""
    bits = draws.random((n, d)) < 0.5
    for i in range(1, d):
        bits[:, i] = np.where(draws.random(n) < 0.85, bits[:, i - 1], bits[:, i])
    return bits


def copies(draws, d, n):
    """Pairs of equal attributes."""
    return (draws.random((n, d)) < 0.5)[:, np.arange(d) // 2 * 2]


def xor(draws, d, n):
    """Every third attribute is the sum of the two before it."""
    bits = draws.random((n, d)) < 0.5
    for i in range(2, d, 3):
        bits[:, i] = bits[:, i - 1] ^ bits[:, i - 2]
    return bits


def parities(draws, d, n):
    """Each attribute is a sum of some of six coins; any two are independent."""
    coins = draws.integers(0, 64, (n, 1))
    masks = np.arange(1, d + 1) % 64
    return np.bitwise_count(coins & masks) % 2 == 1


def categories(draws, d, n):
    """Variables of four categories, one attribute for each."""
    held = draws.choice(4, (n, -(-d // 4)), p=[0.4, 0.3, 0.2, 0.1])
    return (held[:, :, None] == np.arange(4)).reshape(n, -1)[:, :d]


KINDS = {
    "latent": latent,
    "chain": chain,
    "copies": copies,
    "xor": xor,
    "categories": categories,
    "sparse": lambda draws, d, n: draws.random((n, d)) < 0.05,
    "coins": lambda draws, d, n: draws.random((n, d)) < 0.5,
    "biased coins": lambda draws, d, n: draws.random((n, d)) < 0.525,
    "parities": parities,
    "equal": lambda draws, d, n: (draws.random((n, 1)) < 0.5).repeat(d, axis=1),
}


class OutOfTime(Exception):
    """The limit of processor seconds is reached."""


def _stop(signal_number, frame):
    raise OutOfTime


def seconds(bits, queries, rows, limit):
    """Build and draw once at epsilon 1; the processor seconds, or None where they pass the limit."""
    names = [f"x{i}" for i in range(bits.shape[1])]
    domain = Domain(names)
    workload = parse(queries).workload(domain)
    answers = workload.answers(Rows.from_frame(domain, pd.DataFrame(bits, columns=names).astype(np.uint8)))
    start = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        tuple_sampler(workload, answers, len(bits), rows, Fraction(1)).draw(SeededBits(len(bits)))
    except (OutOfTime, SystemError):  # the second where a kernel was running
        return None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="a CSV of 0/1 columns, as one more kind of table")
    parser.add_argument("--queries", default="conjunctions:2")
    parser.add_argument("--attributes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--rows", type=int, nargs="*", default=[10, 20, 40])
    parser.add_argument("--c", type=int, nargs="*", default=list(COST))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--limit", type=float, default=30)
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _stop)
    kinds = {kind: KINDS[kind] for kind in options.kinds}
    if options.data:
        real = pd.read_csv(options.data).to_numpy() != 0
        kinds["data"] = lambda draws, d, n: real[draws.choice(len(real), n)][:, :d]
    seconds(latent(np.random.default_rng(0), 4, 40), options.queries, 4, 1000)  # compiles
    print(f"largest c of {options.c} with {options.queries} within {options.limit:g} s (and the seconds)")
    for rows in options.rows:
        for d in options.attributes:
            print(f"d={d:<3} m={rows:<3}", end="", flush=True)
            for name, make in kinds.items():
                largest, taken = 0, 0.0
                for c in options.c:
                    bits = make(np.random.default_rng(c), d, 2 * rows * c)
                    found = None if bits.shape[1] < d else seconds(bits, options.queries, rows, options.limit)
                    if found is None:
                        break
                    largest, taken = c, found
                print(f"  {name} {largest} ({taken:.1f})", end="", flush=True)
            print()


if __name__ == "__main__":
    main()

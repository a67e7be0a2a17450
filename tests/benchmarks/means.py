"""Coverage and width of what `ask` says of numbers: means, sums, medians, means in groups, on real tables.

    python tests/benchmarks/means.py FOLDER [--releases 100] [--epsilon 1] [--table NAME] [--jobs 1]

FOLDER holds tables that are not part of the project: MedExp.csv, PSID.csv and DoctorContacts.csv of Ecdat
(R), and flchain.csv.gz of survival. Schemas are from their help pages. Truth is the mean, sum or median of
the data's numbers, beyond the range at its ends. Of each kind of question: how often the interval of level
.95 holds it, the share that is measured, and the median half width beside that of Laplace noise on a clipped
mean at the epsilon that the means of the column cost.
"""

import argparse
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import log
from pathlib import Path

import numpy as np
import pandas as pd

import smalldb

NUMBERS = 2  # columns that are asked about, the most skewed ones first
IN_GROUPS = 1  # questions about groups, of each release
SHOWN = 10  # releases, from one print to the next
FLAG = 'kind = "bool"\ntrue = ["yes", "TRUE", "True", "1"]\nfalse = ["no", "FALSE", "False", "0"]'
SEX = 'kind = "categories"\nvalues = ["male", "female"]'
TABLES = {
    "MedExp": (  # medical expenditure in dollars a year
        "med",
        "sex",
        {
            "med": "cuts = [25, 50, 100, 200, 400, 800, 1600, 3200], range = [0, 40000]",
            "ndisease": "cuts = [5, 10, 15, 20, 30], range = [0, 60]",
            "age": "cuts = [10, 20, 30, 40, 50], range = [0, 70]",
            "sex": SEX,
            "child": FLAG,
            "physlim": FLAG,
        },
    ),
    "PSID": (  # earnings in dollars a year, hours worked
        "earnings",
        "married",
        {
            "earnings": "cuts = [1, 5000, 10000, 20000, 30000, 50000, 80000], range = [0, 250000]",
            "hours": "cuts = [1, 500, 1000, 1500, 2000, 2500, 3000], range = [0, 6000]",
            "age": "cuts = [35, 40, 45], range = [30, 50]",
            "married": 'kind = "categories"\nvalues = ["married", "never married"]\nunknown = "other"',
        },
    ),
    "DoctorContacts": (  # visits to doctors a year
        "mdu",
        "sex",
        {
            "mdu": "cuts = [1, 2, 4, 8, 16, 32], range = [0, 100], decimals = 0",
            "ndisease": "cuts = [5, 10, 15, 20, 30], range = [0, 60]",
            "age": "cuts = [10, 20, 30, 40, 50], range = [0, 70]",
            "sex": FLAG.replace('"yes",', '"yes", "male",').replace('"no",', '"no", "female",'),
            "child": FLAG,
        },
    ),
    "flchain": (  # laboratory values
        "creatinine",
        "sex",
        {
            "creatinine": 'cuts = [0.6, 0.8, 1, 1.2, 1.5, 2, 4], range = [0.3, 15], missing = ["NA"]',
            "kappa": "cuts = [0.33, 0.7, 1, 1.3, 1.94, 3, 5, 10], range = [0, 30]",
            "lambda": "cuts = [0.57, 1, 1.3, 1.7, 2.63, 4, 6, 10], range = [0, 30]",
            "age": "cuts = [55, 60, 65, 70, 75, 80, 85, 90], range = [50, 110]",
            "sex": 'kind = "categories"\nvalues = ["F", "M"]',
            "death": FLAG,
        },
    ),
}


def schema_of(name):
    """The text of a schema."""
    lines = []
    for column, said in TABLES[name][2].items():
        keys = said if said.startswith("kind") else "\n".join(['kind = "cuts"', *_keys(said)])
        lines.append(f'[columns."{column}"]\n{keys}\n')
    return "\n".join(['ignore = ["*"]', *lines])


def _keys(said):
    """Keys of a table in one line."""
    return said.replace("], ", "]\n").replace(", decimals", "\ndecimals").splitlines()


def table_of(folder, name):
    """The table, with the columns of the schema."""
    (path,) = Path(folder).glob(f"{name}.csv*")
    return pd.read_csv(path)[[*TABLES[name][2]]]


def truths(name, frame):
    """What is asked, of which kind it is, and what is true."""
    _, group, columns = TABLES[name]
    for column, said in [*columns.items()][:NUMBERS]:
        low, high = map(float, said.partition("range = [")[2].partition("]")[0].split(","))
        x = frame[column].astype(float).clip(low, high)
        yield f"mean({column})", "mean", x.mean(), high - low
        yield f"sum({column})", "sum", x.sum(), (high - low) * len(frame)
        yield f"median({column})", "median", x.quantile(0.5, interpolation="lower"), None
        for value in frame[group].unique()[:2]:
            asked = f"mean({column}) | {group}" if value is True else f"mean({column}) | {group}=`{value}`"
            if value is not True and f"{value}" not in str(columns[group]):
                continue
            asked = asked.replace(f"{group}=`{value}`", f"`{group}={value}`")
            yield asked, "mean in a group", x[frame[group] == value].mean(), high - low


def one(folder, name, epsilon, seed):
    """Of one release: for each question its kind, whether it is held, the widths and the clipped mean's."""
    frame = table_of(folder, name)
    made = smalldb.release(frame, schema=schema_of(name), epsilon=epsilon, rng=seed)
    found = []
    means = made.plan.means
    asked = [*truths(name, frame)]
    groups = [each for each in asked if each[1] == "mean in a group"]  # slow: some of them, in turn
    others = [each for each in asked if each not in groups]
    for text, kind, truth, span in [
        *others,
        *(groups[(seed * IN_GROUPS + i) % len(groups)] for i in range(IN_GROUPS)),
    ]:
        answer = made.measurements and smalldb.inference.ask(made.measurements, text)
        if not answer or answer.known != "measured" or answer.low is None:
            found.append((kind, text, None, 0.0, 0.0, None))
            continue
        clipped = None
        if means is not None and span is not None and kind in ("mean", "sum"):
            cost = float(means.epsilon) / len(means.columns)
            clipped = span / len(frame) / cost * log(20)
        guess = None if answer.guess_low is None else answer.guess_low <= truth <= answer.guess_high
        held = answer.low - 1e-9 * abs(answer.low) <= truth <= answer.high * (1 + 1e-9)
        found.append((kind, text, held, (answer.high - answer.low) / 2, clipped, guess))
    return found


def main(given=None):
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--table", choices=TABLES)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args(given)
    for name in [asked.table] if asked.table else TABLES:
        kinds, widths = defaultdict(list), defaultdict(list)
        with ProcessPoolExecutor(asked.jobs) as pool:
            job = partial(one, asked.folder, name, asked.epsilon)
            for done, rows in enumerate(pool.map(job, range(asked.releases)), 1):
                for kind, text, held, width, clipped, guess in rows:
                    kinds[kind].append(held)
                    if guess is not None:
                        kinds[f"{kind}, by the assumption"].append(guess)
                    if held is not None:
                        widths[text].append((width, clipped))
                if done % SHOWN == 0 or done == asked.releases:
                    print(f"after {done} releases", flush=True)
                    show(name, kinds, widths)


def show(name, kinds, widths):
    """Print what was found so far."""
    for kind, held in kinds.items():
        known = [each for each in held if each is not None]
        share = f"{len(known) / len(held):.2f} measured"
        print(f"{name:16}{kind:34}{np.mean(known):7.3f} held of {len(known)}, {share}")
    for text, found in widths.items():
        half = np.median([width for width, _ in found])
        beside = [clipped for _, clipped in found if clipped]
        ratio = f"{half / np.median(beside):6.2f} of a clipped mean's" if beside else ""
        print(f"{'':16}{text:34}{half:12.4g} half width {ratio}", flush=True)


if __name__ == "__main__":
    main()

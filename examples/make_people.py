"""Write a made-up table of people as real tables are: ages, categories, yes and no, dates, and gaps.

    python examples/make_people.py people.csv

The same 50,000 rows every time; nobody in them exists. ``examples/people.toml`` says what its columns hold.
"""

import csv
import sys
from collections.abc import Iterator
from random import Random

COLUMNS = ("id", "age", "sex", "region", "employment", "smoker", "joined", "income")
REGIONS = ("north", "east", "south", "west")
EMPLOYMENT = ("employed", "self-employed", "student", "retired", "unpaid carer", "seeking work")


def people(count: int = 50_000, seed: int = 1) -> Iterator[tuple[object, ...]]:
    """Yield one row a person."""
    chance = Random(seed)
    for i in range(count):
        age = min(104, int(chance.triangular(16, 100, 38)))
        sex = chance.choice(("female", "male"))
        region = chance.choices(REGIONS, (3, 2, 4, 1))[0]
        old, young = age >= 65, age < 25
        employment = chance.choices(EMPLOYMENT, (12 - 9 * old, 3, 6 * young, 20 * old, 1, 2 - old))[0]
        smoker = chance.random() < 0.12 + 0.1 * (sex == "male") + 0.08 * (employment == "seeking work")
        joined = f"{chance.randint(1990, 2023)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        income = round(chance.lognormvariate(10 - 0.6 * young, 0.6), 2)
        yield (
            100_000 + i,
            age,
            sex,
            region,
            chance.choices((employment, "", "NA"), (50, 1, 1))[0],
            "true" if smoker else "false",
            joined,
            income if chance.random() > 0.1 else "",
        )


def main(path: str) -> None:
    """Write a CSV file with a first line of names."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(people())


if __name__ == "__main__":
    main(*sys.argv[1:] or ["people.csv"])

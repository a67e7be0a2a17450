"""Write two made-up related tables: households, and the persons in them.

    python examples/make_homes.py homes.csv persons.csv

The same 4,000 households every time; nobody in them exists. ``examples/homes.toml`` says what columns hold.
"""

import csv
import sys
from random import Random

HOMES = ("home", "town", "rent", "owned")
PERSONS = ("person", "home", "role", "age", "works")
TOWNS = {"Leeds": 5, "York": 3, "Bath": 1}
Row = tuple[object, ...]


def homes(count: int = 4000, seed: int = 4) -> tuple[list[Row], list[Row]]:
    """Return one row a household, and one row a person."""
    chance = Random(seed)
    households, persons = list[Row](), list[Row]()
    for home in range(1, count + 1):
        town = chance.choices(list(TOWNS), list(TOWNS.values()))[0]
        adults = chance.choices((1, 2, 3), (4, 5, 1))[0]
        children = chance.choices((0, 1, 2, 3, 4), (6, 3, 3, 1, 0.3))[0] if adults > 1 else 0
        owned = chance.random() < (0.6 if children else 0.35)
        rent = round(chance.lognormvariate(6.4 + 0.1 * adults + (town == "Bath") * 0.3, 0.3))
        households.append((home, town, min(3000, rent), "yes" if owned else "no"))
        roles = [
            "head",
            *(["spouse"] if adults > 1 else []),
            *["other"] * (adults - 2),
            *["child"] * children,
        ]
        for role in roles:
            age = chance.randint(0, 24) if role == "child" else chance.randint(19, 92)
            works = 16 <= age < 68 and chance.random() < (0.4 if role == "child" else 0.75)
            persons.append((0, home, role, age, "yes" if works else "no"))
    chance.shuffle(persons)
    return households, [(i, *person[1:]) for i, person in enumerate(persons, start=1)]


def main(first: str, second: str) -> None:
    """Write two CSV files, each with a first line of names."""
    for path, names, rows in zip((first, second), (HOMES, PERSONS), homes(), strict=True):
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            writer.writerows(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])

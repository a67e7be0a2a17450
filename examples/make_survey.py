"""Write a made-up survey as raw tables are: towns, dates, yes/no in several spellings, gaps; 15 columns.

    python examples/make_survey.py survey.csv

The same 20,000 rows every time; nobody in them exists. ``examples/survey.toml`` says what its columns hold.
"""

import csv
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

COLUMNS = (
    *("id", "interviewed", "town", "age", "sex", "born_abroad", "education", "children", "smoker"),
    *("vaccinated", "last_visit", "income", "rent", "satisfaction", "remarks"),
)
TOWNS = {"Leeds": 30, "York": 9, "Hull": 11, "Bath": 4, "Truro": 1, "Exeter": 5, "Bristol": 18}
EDUCATION = ("none", "school", "college", "degree")
REMARKS = ("", "called back", "wants a copy", "asked about the leaflet")


def people(count: int = 20_000, seed: int = 2) -> Iterator[tuple[object, ...]]:
    """Yield one row a person."""
    chance = Random(seed)
    for i in range(count):
        age = min(98, int(chance.triangular(18, 100, 35)))
        town = chance.choices(list(TOWNS), list(TOWNS.values()))[0]
        education = chance.choices(EDUCATION, (1, 5 + age // 10, 6, 8 if age < 50 else 3))[0]
        smoker = chance.random() < 0.3 - 0.06 * EDUCATION.index(education)
        children = min(9, int(chance.expovariate(0.8))) if age > 22 else 0
        visit = date(2015, 1, 1) + timedelta(days=int(3650 * (1 - chance.random() ** 2 * 0.9)))
        income = chance.lognormvariate(9.6 + 0.25 * EDUCATION.index(education), 0.5)
        happy = max(0, min(10, round(chance.gauss(6.5 + 0.3 * (income > 25000) - 0.4 * smoker, 2))))
        yield (
            i + 1,
            f"{chance.randint(8, 19):02}:{chance.randint(0, 59):02}",
            town,
            age,
            chance.choice(("1", "2")),
            "Y" if chance.random() < 0.14 else "N",
            education if chance.random() > 0.03 else "",
            children,
            "yes" if smoker else "no",
            chance.choices(("Yes", "No", "n/a"), (70, 25, 5))[0],
            visit.strftime("%d.%m.%Y") if chance.random() > 0.1 else "",
            f"{income:,.2f}".translate(str.maketrans(",.", ".,")) if chance.random() > 0.12 else "-",
            round(income * chance.uniform(0.015, 0.04) / 5) * 5,
            happy,
            chance.choice(REMARKS),
        )


def main(path: str) -> None:
    """Write a CSV file with a first line of names."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(people())


if __name__ == "__main__":
    main(*sys.argv[1:] or ["survey.csv"])

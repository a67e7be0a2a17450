"""Write the example tables, one row a person, from published counts.

    python examples/make_tables.py

autoworkers.csv
    Prognostic factors of coronary heart disease among 1841 Czech car workers: Reinis et al. (1981),
    Bratislavske lekarske listy 76; analysed by Edwards and Havranek (1985), Biometrika 72:339-351.
    Levels follow the published table: no before yes, systolic pressure below 140 and lipoprotein
    ratio below 3 first, family history negative first.
titanic.csv
    The 2201 people aboard the Titanic by class, sex, age and survival: British Board of Trade (1912);
    Dawson (1995), Journal of Statistics Education 3(3).
"""

import csv
from collections.abc import Iterator
from itertools import product
from pathlib import Path

AUTOWORKERS = (
    "smoker",
    "strenuous_mental_work",
    "strenuous_physical_work",
    "systolic_140_or_more",
    "lipoprotein_ratio_3_or_more",
    "family_history",
)
# first attribute fastest; each no before yes
AUTOWORKERS_COUNTS = (
    *(44, 40, 112, 67, 129, 145, 12, 23, 35, 12, 80, 33, 109, 67, 7, 9),
    *(23, 32, 70, 66, 50, 80, 7, 13, 24, 25, 73, 57, 51, 63, 7, 16),
    *(5, 7, 21, 9, 9, 17, 1, 4, 4, 3, 11, 8, 14, 17, 5, 2),
    *(7, 3, 14, 14, 9, 16, 2, 3, 4, 0, 13, 11, 5, 14, 4, 4),
)

TITANIC = ("first_class", "second_class", "third_class", "female", "child", "survived")
# class (first, second, third, crew) fastest, then sex (male first), age (child first), survived (no first)
TITANIC_COUNTS = (
    *(0, 0, 35, 0, 0, 0, 17, 0, 118, 154, 387, 670, 4, 13, 89, 3),
    *(5, 11, 13, 0, 1, 13, 14, 0, 57, 14, 75, 192, 140, 80, 76, 20),
)


def autoworkers() -> Iterator[tuple[int, ...]]:
    """Yield one row of 0/1 a worker."""
    settings = product((0, 1), repeat=len(AUTOWORKERS))
    for setting, count in zip(settings, AUTOWORKERS_COUNTS, strict=True):
        yield from [setting[::-1]] * count


def titanic() -> Iterator[tuple[int, ...]]:
    """Yield one row of 0/1 a person; crew are of no class."""
    settings = product((0, 1), (1, 0), (0, 1), range(4))
    for (survived, child, female, class_), count in zip(settings, TITANIC_COUNTS, strict=True):
        ranks = tuple(int(class_ == rank) for rank in range(3))
        yield from [(*ranks, female, child, survived)] * count


def write(path: Path, names: tuple[str, ...], rows: Iterator[tuple[int, ...]]) -> None:
    """Write a CSV file with a first line of names."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


if __name__ == "__main__":
    here = Path(__file__).parent
    write(here / "autoworkers.csv", AUTOWORKERS, autoworkers())
    write(here / "titanic.csv", TITANIC, titanic())

"""Train on synthetic rows, test on real ones; for the curator. Extra ``learn``."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from queries import Domain, Rows
from queries.arrays import Codes
from smalldb.exact.bits import SeededBits
from smalldb.releasing.baselines import apart

REAL = "real"
_MOST_CATEGORIES = 255  # of a column that trees split by sets of categories


@dataclass(frozen=True, slots=True)
class Classified:
    """How well a classifier of the target does on real rows that it has not seen. Confidential."""

    accuracy: float  # the share of rows whose category it tells
    balanced: float  # the mean of that over the categories of the target


def check_classifying(instead: str = "") -> None:
    """Refuse where scikit-learn is missing, and say what else could be done: ValueError."""
    try:
        import sklearn.ensemble  # noqa: F401 - only whether it is there
    except ImportError as error:
        needed = "classifiers need scikit-learn: pip install 'smalldb-dp[learn]'"
        raise ValueError(needed + instead) from error


def classified(real: Rows, tables: Mapping[str, Rows], target: int) -> dict[str, Classified]:
    """Train a classifier of a column's categories on each table, and on half the real rows; test on the rest.

    Boosted trees (histogram gradient boosting of scikit-learn, as it comes, with a fixed seed) see the
    categories of all other columns. The halves are taken at random, by a fixed seed. No more than 2^18 rows
    are taken.
    """
    rows = apart(real, SeededBits(0))
    half = len(rows) // 2
    if not half:
        return {}
    training = {REAL: rows[half:]} | {name: apart(table, SeededBits(0)) for name, table in tables.items()}
    truth = rows[:half, target]
    found = {}
    for name, given in training.items():
        right = _told(real.domain, given, rows[:half], target) == truth
        by_category = [float(right[truth == code].mean()) for code in np.unique(truth)]
        found[name] = Classified(float(right.mean()), float(np.mean(by_category)))
    return found


def _told(domain: Domain, training: Codes, testing: Codes, target: int) -> Codes:
    """Return the codes that a model of the training rows tells of the testing rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    codes = training[:, target]
    if (codes == codes[0]).all():
        return np.full(len(testing), codes[0])
    others = [c for c in range(len(domain.sizes)) if c != target]
    named = [not domain.columns[c].ordered and 2 < domain.sizes[c] <= _MOST_CATEGORIES for c in others]
    model = HistGradientBoostingClassifier(
        random_state=0, early_stopping=False, categorical_features=np.array(named)
    )
    model.fit(training[:, others], codes)
    told: Codes = model.predict(testing[:, others])
    return told

"""The certificate: how far any query of the workload is off in the finished table, measured or not."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log

import numpy as np

from queries import Rows, Workload
from queries.domain import Integers
from smalldb.files.checkpoints import digest_of
from smalldb.marginals.asks import Noisy, Worst
from smalldb.marginals.counts import Answers
from smalldb.marginals.curator import Steps
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.mechanisms import LOST

_SLACK = 1 + 1e-12  # more than what rounding takes from a sum of a few floats


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was released on the distance between the answers of the data and those of the finished rows.

    Distances are in units of 1 / D of a row, where D is the common denominator of the queries.
    """

    # the number of the selected query in the workload; the size of the workload stands for the number of all
    # rows
    query: int
    distance: int  # D times its sum over the data, less what the finished rows say of it, with noise
    # the number of rows that the finished rows stand for: n, or under add-remove what was read of it
    total: int
    workload: Workload  # the queries that are covered
    law: PrivacyMeasure  # of the noise
    cost: Fraction  # of the selection, and again of the noise: an epsilon, or a rho

    def rows(self, beta: Fraction) -> Fraction:
        """Return a number of rows that no query is off by more than, with probability 1 - beta or more."""
        margin = beyond(self.workload, self.law, self.cost, beta)
        return Fraction(abs(self.distance) + margin, self.workload.denominator)

    # Proof: docs/proofs/certificate.md, "Shares".
    def share(self, beta: Fraction) -> Fraction:
        """Return a share that no query's answer is off by more than, with probability 1 - beta or more."""
        if self.total == 0:
            return Fraction(1)
        rounded = Fraction(1, 2 * self.workload.denominator)  # of the expected sum of a query
        times = 1 if self.law.replaced else 2  # the number of rows is off, too
        return min(Fraction(1), (times * self.rows(beta) + rounded) / self.total)


# Proof: docs/proofs/certificate.md, lemmas 1 and 2.
def certify(workload: Workload, finished: Rows, total: int, law: PrivacyMeasure, cost: Fraction) -> Steps:
    """Ask for the worst query, with half of the cost, and how far it is off: a `Certificate`."""
    denominator, half, of = workload.denominator, cost / 2, Answers(workload)
    foretold = np.append(expected(workload.answers(finished), finished.n, total), denominator * total)
    chosen = yield Certified(
        of=of,
        scores=lambda counts: np.abs(counts[0] - foretold),
        moved=denominator,
        law=law,
        cost=half,
        about=digest_of(finished.words, finished.counts),
    )
    noise = law.noise_of_number(half, denominator)
    (value,) = yield Noisy(of, ((noise, 1),), at=chosen)
    return Certificate(chosen, int(value) - int(foretold[chosen]), total, workload, law, half)


# Proof: docs/proofs/certificate.md, lemma 2.
@dataclass(frozen=True, eq=False, kw_only=True)
class Certified(Worst):
    """The query that is furthest off; it is kept with what it is about: the same finished rows."""

    about: str

    def pack(self, answer: int) -> tuple[str, int]:
        """Return the finished rows, as a digest, and the query."""
        return self.about, answer

    def unpack(self, packed: tuple[str, int]) -> int:
        """Return the query."""
        if packed[0] != self.about:
            raise ValueError(f"checkpoint: its certificate is of other rows: {LOST}")
        return packed[1]


# Proof: docs/proofs/certificate.md, lemma 1.
def expected(answers: Integers, rows: int, total: int) -> Integers:
    """Return the sums over `rows` rows as they would be over `total` of them, rounded (none: as is)."""
    if rows in (0, total):
        return answers
    whole, rest = answers // rows, answers % rows  # so that no product passes 2^63
    if total * rows >= 1 << 62:
        return np.array([(2 * a * total + rows) // (2 * rows) for a in answers.tolist()], dtype=np.int64)
    return np.asarray(whole * total + (2 * rest * total + rows) // (2 * rows))


# Proof: docs/proofs/certificate.md, lemmas 4 and 5.
def beyond(workload: Workload, law: PrivacyMeasure, cost: Fraction, beta: Fraction) -> int:
    """Return by how much a certificate exceeds the distance that it released, in units of 1 / D of a row."""
    noise = law.noise_of_number(cost, workload.denominator)
    return missed(workload, law, cost, float(beta / 2)) + int(noise.quantile(None, beta / 2))


# Proof: docs/proofs/certificate.md, lemma 3.
def missed(workload: Workload, law: PrivacyMeasure, cost: Fraction, beta: float) -> int:
    """Return by how much less the selected query is off than the worst, but with probability beta."""
    epsilon = float(law.selecting(cost))
    return ceil(2 * workload.denominator / epsilon * log((workload.size + 1) / beta) * _SLACK)

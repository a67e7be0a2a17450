"""Where the data hardly matter: candidates are drawn uniformly, and most of them are kept."""

from fractions import Fraction

from smalldb.exact.bits import BitSource
from smalldb.exact.coins import bernoulli_exp
from smalldb.rejection.target import Bits, Target, uniform_words


class Flat:
    """SmallDB over ordered rows where ``rate n m D <= 1``: a uniform candidate is kept with at least 1/e."""

    # confidential as a whole: computed from the data

    def __init__(self, target: Target, rate: Fraction) -> None:
        self.trials = 0
        self._target, self._rate = target, rate

    def __repr__(self) -> str:
        return "<Flat: computed from the data>"

    # Proof: docs/proofs/rejection.md, lemma 9.
    def draw(self, source: BitSource) -> tuple[Bits, int]:
        """Draw m ordered rows, shape (m, d), and their score, in proportion to exp(-rate score)."""
        target = self._target
        while True:
            self.trials += 1
            columns = uniform_words(source, target.attributes) & target.everyone
            score = target.score(columns)
            if bernoulli_exp(self._rate * score, source):
                return target.bits(columns), score

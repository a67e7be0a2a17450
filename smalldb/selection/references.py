"""Two mechanisms that the literature measures others against: Laplace noise and randomised response."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from smalldb.exact.bits import BitSource, bit_source
from smalldb.exact.integers import coins, logistic, whole_geometric
from smalldb.exact.numbers import Number, positive

ANALYSES = ("direct", "exponential")


def laplace(
    answer: int,
    *,
    epsilon: Number,
    sensitivity: Number = 1,
    analysis: str = "direct",
    rng: int | BitSource | None = None,
) -> int:
    """
    Release a whole number with two-sided geometric noise: the Laplace mechanism on the integers, exact.

    Equation (28) of `docs/theory.md`. r has probability proportional to exp(-|r - answer| / b).

    Parameters
    ----------
    answer
        A whole number, such as a count.
    epsilon, sensitivity
        The guarantee, and by how much a neighbour can change the answer; exact, above 0.
    analysis : {"direct", "exponential"}
        b = sensitivity / epsilon, because |r - answer| obeys the triangle inequality and the normaliser does
        not depend on the answer; or b = 2 sensitivity / epsilon, which is what the general theorem of the
        exponential mechanism gives for the score -|r - answer|: twice the noise for the same guarantee.
    rng
        None: the operating system's entropy; an int seed (not private); or a `BitSource`.

    Examples
    --------
    >>> laplace(100, epsilon=1, rng=1)
    102
    """
    if isinstance(answer, bool) or not isinstance(answer, int | np.integer):
        raise TypeError("answer must be a whole number")
    if analysis not in ANALYSES:
        raise ValueError(f"analysis must be one of {', '.join(map(repr, ANALYSES))}, not {analysis!r}")
    rate = positive(epsilon, "epsilon") / positive(sensitivity, "sensitivity")
    rate = rate if analysis == "direct" else rate / 2
    return int(answer) + int(whole_geometric(rate, 1, bit_source(rng))[0])


def randomised_response(
    answers: Iterable[bool], *, epsilon: Number, rng: int | BitSource | None = None
) -> npt.NDArray[np.bool_]:
    """
    Return each answer as it is with probability e^epsilon / (1 + e^epsilon), and negated otherwise: exact.

    Equation (28) of `docs/theory.md`. It is the exponential mechanism with score 1 for the truth and 0 for
    a lie, where a change of answer exchanges them. Every answer is epsilon-differentially private by
    itself, and no mechanism of that epsilon is worse under composition.

    Parameters
    ----------
    answers
        Yes or no, one for each person.
    epsilon
        Of each answer; exact, above 0.
    rng
        As for `laplace`.

    Examples
    --------
    >>> randomised_response([True] * 8, epsilon=2, rng=1).tolist()
    [True, True, False, True, True, True, True, True]
    """
    rate = positive(epsilon, "epsilon")
    truth = np.array(list(answers))
    if truth.dtype != bool and truth.size:
        raise TypeError("answers must be True or False")

    return truth.astype(np.bool_) ^ coins(logistic(rate), len(truth), bit_source(rng))

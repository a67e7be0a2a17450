"""`select`: one of finitely many candidates, or a ranked list of them, under pure differential privacy."""

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from smalldb.accounting.checked_arguments import checked_flag
from smalldb.exact.bits import BitSource, bit_source
from smalldb.exact.coins import bernoulli_exp
from smalldb.exact.integers import uniform_below
from smalldb.exact.numbers import Number, positive, whole
from smalldb.noise.privacy_loss import Loss
from smalldb.selection.drawing import exponential, noisy_max, permute_and_flip, ranked
from smalldb.selection.scored import Chunk, Namer, Scored, by_label, labelled, read_scores, read_weights

DRAWS = {
    "exponential": exponential,
    "permute-and-flip": permute_and_flip,
    "noisy-max": noisy_max,
    "top-k": exponential,
}
# Proof: docs/proofs/losses.md, lemmas 2, 6 and 11.
LOSSES = {
    "exponential": Loss.ranged,
    "permute-and-flip": Loss.laplace,
    "noisy-max": Loss.pure,
    "top-k": Loss.ranged,
}


@dataclass(frozen=True, slots=True)
class Selection:
    """
    What was selected, and what it costs; all of it may be published.

    Attributes
    ----------
    indices
        The positions of the selected candidates among the scores, from 0, in the order of selection.
    labels
        Their labels, if the scores had some: those of a dict or a Series; else None.
    counts
        Their scores with noise, if asked for; else None.
    method
        How they were drawn.
    epsilon
        The guarantee: pure epsilon-differential privacy of all of it together.
    loss
        What it loses, as `smalldb.accounting.compose_losses` takes it: an exponential draw is of bounded
        range, permute-and-flip loses no more than Laplace noise, and noisy max is pure.
    convention
        Which exponent or noise epsilon stands for, u being a score (with `counts`, half of epsilon).
    private
        False where the randomness came from a seed or a script.
    """

    indices: tuple[int, ...]
    labels: tuple[Any, ...] | None
    counts: tuple[int, ...] | None
    method: str
    epsilon: Fraction
    loss: Loss
    convention: str
    private: bool

    @property
    def index(self) -> int:
        """The position of the first one selected."""
        return self.indices[0]

    @property
    def label(self) -> Any:
        """The label of the first one selected; None: there are no labels."""
        return None if self.labels is None else self.labels[0]

    @property
    def bounded_range(self) -> Fraction | None:
        """Its bounded-range parameter (Dong, Durfee, Rogers 2020): of one exponential draw; else None."""
        return self.loss.bounded_range

    @property
    def rho(self) -> Fraction | None:
        """Its zero-concentrated privacy: the sum over what was drawn."""
        return self.loss.rho


@dataclass(frozen=True, slots=True)
class Terms:
    """What the parameters of a selection come to."""

    # method, k: checked
    method: str
    k: int
    epsilon: Fraction  # of the whole selection, without counts
    rate: Fraction  # a draw goes by exp(rate u), or by noise of scale 1 / rate
    convention: str  # the same in words


def terms(
    *,
    epsilon: Number,
    sensitivity: Number | None = None,
    range: Number | None = None,
    monotone: bool = False,
    method: str = "exponential",
    k: int = 1,
) -> Terms:
    """Check the parameters of a selection and say what they come to."""
    if method not in DRAWS:
        raise ValueError(f"method must be one of {', '.join(map(repr, DRAWS))}, not {method!r}")
    checked_flag(monotone, "monotone")
    k = whole(k, "k")
    exact = positive(epsilon, "epsilon")
    if (sensitivity is None) == (range is None):
        raise ValueError("give sensitivity or range, one of the two")
    each = exact / k
    if range is not None:
        if monotone:
            raise ValueError("monotone is about a sensitivity: a range needs no such promise")
        width, word = positive(range, "range"), "range"
    else:
        width, word = positive(sensitivity, "sensitivity"), "sensitivity"
        if not monotone:
            width, word = 2 * width, "(2 sensitivity)"
    share = "epsilon" if k == 1 else f"(epsilon / {k})"
    forms = {
        "exponential": f"probability proportional to exp({share} u / {word})",
        "top-k": f"probability proportional to exp({share} u / {word})",
        "permute-and-flip": f"heads with probability exp({share} (u - max u) / {word})",
        "noisy-max": f"Laplace noise of scale {word} / {share}",
    }
    rounds = f"in each of {k} rounds, " if k > 1 or method == "top-k" else ""
    return Terms(method, k, exact, each / width, rounds + forms[method])


def candidates_of(
    scores: object, base_measure: object, chosen: Terms, most: int | None = None
) -> tuple[list[Chunk], bool, list[int] | None, Namer | None]:
    """Return the scores, whether all are integers, the base measure, and what tells labels; checked."""
    values, namer = labelled(scores)
    chunks, integers = read_scores(values, most)
    size = sum(map(len, chunks))
    weights = read_weights(by_label(base_measure, namer, size), size)
    if weights is not None and DRAWS[chosen.method] is not exponential:
        raise ValueError(f"base_measure is for 'exponential' and 'top-k', not for {chosen.method!r}")
    if chosen.k > (size if weights is None else sum(map(bool, weights))):
        raise ValueError("k must be at most the number of candidates")
    return chunks, integers, weights, namer


# Proof: docs/proofs/learned.md, lemma 2; docs/proofs/select.md, lemma 7; docs/proofs/losses.md, lemma 11.
def select(
    scores: object,
    *,
    epsilon: Number,
    sensitivity: Number | None = None,
    range: Number | None = None,
    monotone: bool = False,
    base_measure: object = None,
    method: str = "exponential",
    k: int = 1,
    counts: bool = False,
    rng: int | BitSource | None = None,
    seed: int | None = None,
) -> Selection:
    """
    Select a candidate of high score under pure epsilon-differential privacy, exactly.

    Cost: a few passes over the scores, however many are selected, and no list of probabilities. "top-k" keeps
    the positions of all candidates, 8 bytes each.

    Parameters
    ----------
    scores
        One number a candidate, or chunks of them (any iterable of lists and arrays, looked at once); or a
        dict or pandas Series of them by label, whose labels and their order are public.
        Integers, Fractions, Decimals, and floats, each of which is read as the fraction that it is. Prefer
        integers and Fractions: the sensitivity must hold for the numbers given, and rounding is part of
        floats (0.1 * 3 - 0.1 * 2 exceeds 1/10; `smalldb.selection.score_sensitivity` tells what listed
        scores need).
    epsilon
        Of all that is returned together. Exact; a float is read through its shortest decimal text.
    sensitivity, range
        Public. Of a score between neighbours: by how much it can change; or how far apart the changes of two
        scores can be (never more than twice the sensitivity). One of the two.
    monotone
        The caller's promise that all scores move the same way between neighbours, as counts do under
        add-remove: half of the noise will do. If it is not so, up to 2 epsilon is lost.
    base_measure
        Public weights of the candidates, at least 0; for "exponential" and "top-k". By label, if both are.
    method
        "exponential"; "permute-and-flip" (McKenna and Sheldon 2020: never worse in mean score);
        "noisy-max" (the largest score with Laplace noise); "top-k": a ranked list by k exponential draws
        without replacement, each with epsilon / k, which is also the law of one-shot top-k: the k largest
        scores with Gumbel noise of scale k (2 sensitivity) / epsilon.
    k
        How many: a ranked list, by k draws of the method without replacement, each with epsilon / k.
        "exponential" is then "top-k".
    counts
        Also the scores of the selected with two-sided geometric noise, for which half of epsilon is spent.
        The scores must be integers.
    rng
        None: the operating system's entropy; or a `BitSource`. An int is a seed.
    seed
        For experiments: repeatable, and not private.

    Examples
    --------
    >>> select([10, 30, 20], epsilon=1, sensitivity=1, rng=2).index
    1
    """
    source = bit_source(rng, seed)
    checked_flag(counts, "counts")
    total = positive(epsilon, "epsilon")
    chosen = terms(
        epsilon=total / 2 if counts else total,
        sensitivity=sensitivity,
        range=range,
        monotone=monotone,
        method=method,
        k=k,
    )
    if counts and sensitivity is None:
        raise ValueError("counts need a sensitivity, not a range")
    chunks, integers, weights, namer = candidates_of(scores, base_measure, chosen)
    if counts and not integers:
        raise TypeError("counts need scores that are integers")

    scored = Scored(chunks, chosen.rate, weights)
    if chosen.k > 1 and DRAWS[method] is exponential:
        indices = ranked(scored, chosen.k, source)
    else:
        indices = [DRAWS[method](scored, source)]
        while len(indices) < chosen.k:
            scored.drop(indices[-1:])
            indices.append(DRAWS[method](scored, source))
    noisy, drawn = None, LOSSES[method](chosen.epsilon / chosen.k)
    losses = [drawn] * chosen.k
    if counts:
        moved = positive(sensitivity, "sensitivity")
        rate = total / (2 * chosen.k * moved)
        noisy = tuple(int(scored.score(index)) + _geometric(rate, source) for index in indices)
        losses += [Loss.geometric(rate, int(moved)) if moved >= 1 else Loss.none()] * chosen.k
    return Selection(
        indices=tuple(indices),
        labels=None if namer is None else tuple(map(namer, indices)),
        counts=noisy,
        method=method,
        epsilon=total,
        loss=reduce(Loss.together, losses),
        convention=chosen.convention,
        private=source.private,
    )


def _geometric(rate: Fraction, source: BitSource) -> int:
    """Draw an integer z, of probability as exp(-rate |z|), with a few coins whatever the rate."""
    # Rate p / q: x is drawn with probability proportional to exp(-x / q), as its remainder and its
    # quotient by q, and |z| is x // p; a zero counts once, not once for each sign (Canonne, Kamath,
    # Steinke 2020, Alg. 2).
    p, q = rate.as_integer_ratio()
    while True:
        x = uniform_below(q, source)
        if not bernoulli_exp(Fraction(x, q), source):
            continue
        while bernoulli_exp(Fraction(1), source):
            x += q
        size, negative = x // p, source.bits(1)
        if size or not negative:
            return -size if negative else size

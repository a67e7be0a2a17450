"""What tests of margins share: every string of bits is walked, so that a lost margin is seen, not sampled."""

from collections import Counter
from contextlib import suppress
from fractions import Fraction
from math import ceil, exp

import numpy as np
from scipy import stats

from smalldb.exact.levels import exp_enclosure
from smalldb.noise.distributions import Geometric

LN2 = Fraction(69314718055994530941723212145817656807, 10**38)  # rounded down


def law_of(noise, reach=None):
    """The probabilities of one number from -reach to reach, from the series of its law."""
    geometric = isinstance(noise, Geometric)
    if reach is None:
        reach = int(60 / noise.rate) + 2 if geometric else int(12 * float(noise.scale) ** 0.5) + 8
    x = np.arange(-reach, reach + 1)
    odds = np.exp(-abs(x) * float(noise.rate) if geometric else -(x**2) / (2 * float(noise.scale)))
    return odds / odds.sum()


def p_value(found, law):
    """The p-value of counts of outcomes against the law; outcomes that are rare go together."""
    trials = found.total()
    expected = trials * np.array([float(p) for p in law.values()])
    seen = np.array([found[outcome] for outcome in law], dtype=float)
    often = expected >= 5
    rare, others = trials - expected[often].sum(), trials - seen[often].sum()
    expected, seen = expected[often], seen[often]
    if others or rare > 1e-9 * trials:
        expected, seen = np.append(expected, max(rare, 1e-9)), np.append(seen, others)
    return stats.chisquare(seen, expected * trials / expected.sum()).pvalue if len(seen) > 1 else 1.0


class OutOfBits(EOFError):
    """A scripted source has handed out its last bit."""


class ScriptedBits:
    """Exactly the bits of a script, then `OutOfBits`; for walking through the decisions of a sampler."""

    private = False

    def __init__(self, script):
        if not set(script) <= {0, 1, "0", "1"}:
            raise ValueError("script must hold the bits 0 and 1 only")
        self._rest = "".join(str(int(bit)) for bit in script)

    def bits(self, count):
        """Hand out the next `count` bits of the script, all of them or none."""
        if count > len(self._rest):
            raise OutOfBits("the script has no bits left")
        drawn, self._rest = self._rest[:count], self._rest[count:]
        return int(drawn or "0", 2)


class Walk:
    """The bits of a script, then zeros up to a depth; what has a one in place of such a zero is left open."""

    private = False

    def __init__(self, script, depth, open_scripts):
        self.script, self._depth, self._open, self._read = script, depth, open_scripts, 0

    def bits(self, count):
        end = self._read + count
        if end > self._depth:
            raise OutOfBits
        while len(self.script) < end:
            self._open.append(self.script + "1")
            self.script += "0"
        drawn, self._read = self.script[self._read : end], end
        return int(drawn or "0", 2)


def outcomes(draw, depth):
    """The probability of each outcome that scripts of up to `depth` bits decide."""
    found, open_scripts = Counter(), [""]
    while open_scripts:
        source = Walk(open_scripts.pop(), depth, open_scripts)
        with suppress(OutOfBits):
            found[draw(source)] += Fraction(1, 1 << len(source.script))
    return found


class Decisions:
    """Takes every decision of a draw by its probability."""

    private = False
    least = 0

    def law(self, draw):
        """The probability of each outcome, without what is decided by steps of less than the least one."""
        found, self._left = Counter(), [()]
        while self._left:
            self._script, self._read, self._weight, self.fresh = self._left.pop(), 0, 1.0, True
            with suppress(OutOfBits):
                found[draw(self)] += self._weight
        return found

    def choose(self, odds):
        """Decide by these odds; return what was chosen."""
        if self._read == len(self._script):
            self._left += [(*self._script, i) for i in range(1, len(odds)) if odds[i]]
            self._script += (0,)
        chosen = self._script[self._read]
        self._read, self._weight = self._read + 1, self._weight * odds[chosen]
        if self._weight <= self.least:
            raise OutOfBits
        return chosen

    def heads(self, p):
        """Toss a coin."""
        assert p <= 1
        return self.choose([p, 1 - p]) == 0

    def toss(self, r, source, factor=1):
        """Stand in for `bernoulli_exp`."""
        exponent = r if isinstance(r, Fraction) else sum(r.enclosure(64)) / 2
        return self.heads(float(factor) * exp(-exponent))


def check_coins(monkeypatch, module):
    """Let every coin of a module fail the test whose probability is above 1; return the factors of coins."""
    toss, factors = module.bernoulli_exp, []

    def checked(r, source, factor=1):
        low = r if isinstance(r, Fraction) else max(r.enclosure(200)[0], Fraction(0))
        precision = 220 + ceil(low * 3 / 2)
        assert factor * exp_enclosure(low, precision)[0] <= 1 << precision
        factors.append(factor)
        return toss(r, source, factor)

    monkeypatch.setattr(module, "bernoulli_exp", checked)
    return factors


def obeys(found, law, undecided):
    """Whether no outcome was decided more often than it may be, and hardly anything is left undecided."""
    slack = Fraction(1, 10**25)  # of the twins
    return 1 - sum(found.values()) <= undecided and all(p <= law[v] + slack for v, p in found.items())

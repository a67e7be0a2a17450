"""What tests of margins share: every string of bits is walked, so that a lost margin is seen, not sampled."""

from collections import Counter
from fractions import Fraction

from smalldb.exact.bits import OutOfBits, ScriptedBits


def outcomes(draw, depth):
    """The probability of each outcome that scripts of up to `depth` bits decide."""
    found, open_scripts = Counter(), [""]
    while open_scripts:
        script = open_scripts.pop()
        try:
            found[draw(ScriptedBits(script))] += Fraction(1, 1 << len(script))
        except OutOfBits:
            if len(script) < depth:
                open_scripts += [script + "0", script + "1"]
    return found


def obeys(found, law, undecided):
    """Whether no outcome was decided more often than it may be, and hardly anything is left undecided."""
    slack = Fraction(1, 10**25)  # of the twins
    return 1 - sum(found.values()) <= undecided and all(p <= law[v] + slack for v, p in found.items())

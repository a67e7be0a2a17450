"""How a release is shown; of names, titles and paths, without signs that hide or turn what stands around."""

import re
import unicodedata

# the joiners are part of words, in Persian and in Hindi for two; a newline is kept where lines are
_KEPT = "\u200c\u200d"
_SEEN = re.compile(r"[ -~]*")


def visible(text: str, kept: str = "") -> str:
    """Write controls, escapes, signs of direction and half characters as Python does, but for `kept`."""
    if _SEEN.fullmatch(text):
        return text
    return "".join(sign if sign in kept else _seen(sign) for sign in text)


def _seen(sign: str) -> str:
    hidden = unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") and sign not in _KEPT
    return sign.encode("unicode_escape").decode() if hidden else sign

"""The one grammar of predicates, orders, formulas and questions, none of it run as code; and faults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from queries.arrays import Booleans

_T = TypeVar("_T")
Step = tuple[str, Any]  # "name" and the name, "number" and its value, or "sign" and the sign

MAX_LENGTH = 10_000  # characters of one expression
MAX_RULES = 1 << 14  # of a domain; an AND is several
MAX_RULE_LETTERS = 1 << 19  # of all of them together
MOST_TOLD = 1500  # letters of an error: faults beyond them are counted
LONGEST = 1200  # of one fault: the rest is cut
TOO_MANY = "valid: more than 2^14 rules (an AND counts as several): keep those that rule out the most rows"

_SIGN = r"(?:>=|<=|<|>|=)"
_WORD = r"[^\W\d]\w*"
NAME = rf"(?:{_WORD}(?:\.\w+)*|`[^`]+`)"
_VALUE = r"""(?:"[^"]*"|'[^']*'|[-\w.:]+)"""
_PREDICATE = re.compile(  # `age >= 40` is the name `age>=40`
    rf"(?P<low>-?[0-9][-\w.:]*)\s*(?P<above><=?)\s*(?P<between>{NAME})\s*(?P<below><=?)\s*(?P<high>{_VALUE})"
    rf"|(?P<member>{NAME})\s+in\s*[({{[](?P<listed>[^)}}\]]*)[)}}\]]"
    rf"|(?P<name>{NAME})(?:\s*(?P<compared>{_SIGN})\s*(?P<value>{_VALUE}))?|(?P<sign>[&|^~()])"
)
_FORMULA = re.compile(rf"(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<name>{_WORD}|`[^`]+`)|(?P<sign>[-+*/()])")
_COLUMN = rf"(?:{_WORD}|`[^`]+`)"
_CHAIN = re.compile(rf"\s*{_COLUMN}(?:\s*(?:<=|>=|<|>)\s*{_COLUMN})+\s*")
_LINK = re.compile(rf"\s*(?P<name>{_COLUMN})\s*(?P<sign><=|>=|<|>)?")
NEGATIVE = "negative"  # the sign before a number, among the steps of a formula
_BINDING = {"~": 4, "&": 3, "^": 2, "|": 1}
_BINDING_OF_FORMULAS = {NEGATIVE: 3, "*": 2, "/": 2, "+": 1, "-": 1}
_WORDS = re.compile(r"\b(and|or|not)\b")
_COMBINE: dict[str, Callable[[Booleans, Booleans], Booleans]] = {
    "&": np.logical_and,
    "^": np.logical_xor,
    "|": np.logical_or,
}


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed predicate."""

    text: str  # the predicate as it was written
    steps: tuple[Step, ...]  # postfix order: ``("name", attribute)`` or ``("sign", operator)``

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that occur, each once, in order of first appearance."""
        return tuple(dict.fromkeys(word for kind, word in self.steps if kind == "name"))

    def evaluate(self, column: Callable[[str], Booleans]) -> Booleans:
        """Return the truth of the predicate, with ``column(name)`` the truth of an attribute."""
        return evaluate(
            self.steps,
            lambda _, name: column(name),
            lambda sign, left, right: np.logical_not(right) if left is None else _COMBINE[sign](left, right),
        )

    @property
    def conjuncts(self) -> tuple[Expression, ...]:
        """The predicates whose AND this one is, as far as its outermost signs tell."""
        parts: list[Expression] = []
        steps, begins = self.steps, self._begins
        waiting = [(len(steps) - 1, False)]  # the last step of a part, and whether a ~ stands before it
        while waiting:
            at, negated = waiting.pop()
            last = steps[at][1] if steps[at][0] == "sign" else ""
            if last == ("|" if negated else "&"):  # of a negated one by De Morgan
                waiting += [(at - 1, negated), (begins[at - 1] - 1, negated)]
            elif last == "~" and not negated and steps[at - 1] == ("sign", "|"):
                waiting.append((at - 1, True))
            else:
                part = steps[begins[at] : at + 1]
                parts.append(Expression(self.text, (*part, ("sign", "~")) if negated else part))
        return tuple(parts)

    @property
    def _begins(self) -> list[int]:
        """The first step of the operand or the predicate that ends with each step."""
        begins, whole = list[int](), list[int]()  # of all; of those that no later step has joined
        for at, (kind, word) in enumerate(self.steps):
            if kind == "name":
                whole.append(at)
            elif word in _COMBINE:
                whole.pop()
            begins.append(whole[-1])
        return begins


def parse(text: str) -> Expression:
    """Parse a predicate; names that are not identifiers stand in backticks.

    A name may be compared with a value, as in ``age >= 40``: that is the name ``age>=40``. ``job in (none,
    part)`` stands for several, ``18 <= age < 65`` for two.

    Binding, tightest first: ``~``, ``&``, ``^``, ``|`` (as in Python).

    >>> parse("18 <= age < 65 & job in (none, 'part')").names
    ('age>=18', 'age<65', 'job=none', 'job=part')
    """
    if not isinstance(text, str):
        raise TypeError(f"a predicate must be text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a predicate may have at most {MAX_LENGTH} characters")
    return _parsed(text)


@lru_cache(maxsize=MAX_RULES)
def _parsed(text: str) -> Expression:
    def fail(at: int, expected: str) -> ValueError:
        hint = " (a name with spaces stands in backticks)" if re.match(r"[^\W\d]", text[at:]) else ""
        hint = " (one = is enough)" if "==" in text else hint
        hint = " (and, or, not are written &, |, ~)" if _WORDS.search(text) else hint
        return ValueError(f"predicate {shorten(text)!r}: expected {expected} at character {at + 1}{hint}")

    words = "an attribute name (in backticks if it is not an identifier), & | ^ ~ or parentheses"
    return Expression(text, _postfix(text, _PREDICATE, _operand, _BINDING, {"~": "~"}, fail, words))


def _operand(token: re.Match[str]) -> tuple[Step, ...]:
    """Return the names that a part of a predicate stands for, and the signs between them."""
    if token["name"]:
        compared = f"{token['compared']}{_plain(token['value'])}" if token["compared"] else ""
        return (("name", token["name"].strip("`") + compared),)
    if token["between"]:
        name, above = token["between"].strip("`"), token["above"].replace("<", ">")
        ends = f"{name}{above}{token['low']}", f"{name}{token['below']}{_plain(token['high'])}"
        return ("name", ends[0]), ("name", ends[1]), ("sign", "&")
    if token["member"]:
        name = token["member"].strip("`")
        first, *others = [f"{name}={_plain(value.strip())}" for value in token["listed"].split(",")]
        return ("name", first), *(step for other in others for step in (("name", other), ("sign", "|")))
    return ()


def _plain(value: str) -> str:
    return value[1:-1] if value[:1] in ("'", '"') else value


def formula(text: str) -> tuple[Step, ...]:
    """Parse a formula such as ``age - education - 6`` into steps in postfix order, numbers as fractions."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"an expression may have up to {MAX_LENGTH} characters")

    def operand(token: re.Match[str]) -> tuple[Step, ...]:
        if token["number"]:
            return (("number", Fraction(token["number"])),)
        return (("name", token["name"].strip("`")),) if token["name"] else ()

    def fail(at: int, expected: str) -> ValueError:
        if expected == words:
            return ValueError(f"{shorten(text)!r}: at character {at + 1}: expected {expected}")
        return ValueError(f"{shorten(text)!r}: expected an expression such as age - education - 6")

    words = "a number, a column, + - * / ( )"
    return _postfix(text, _FORMULA, operand, _BINDING_OF_FORMULAS, {"-": NEGATIVE}, fail, words)


def _postfix(
    text: str,
    tokens: re.Pattern[str],
    operand: Callable[[re.Match[str]], tuple[Step, ...]],
    binding: Mapping[str, int],
    prefix: Mapping[str, str],
    fail: Callable[[int, str], ValueError],
    words: str,
) -> tuple[Step, ...]:
    """Bring a text into postfix order; `prefix` says what a sign before an operand is called."""
    steps, waiting = list[Step](), list[str]()
    wanted, at, end = True, 0, len(text.rstrip())
    signs = " ".join(sign for sign in binding if sign not in prefix.values())
    first = f"an attribute name, {' '.join(prefix)} or ("

    while at < end:
        if text[at].isspace():
            at += 1
            continue
        token = tokens.match(text, at)
        if token is None:
            raise fail(at, words)
        operands, sign = operand(token), token["sign"]
        if wanted:
            if operands:
                steps += operands
                wanted = False
            elif sign == "(" or sign in prefix:
                waiting.append(prefix.get(sign, sign))
            else:
                raise fail(at, first)
        elif sign == ")":
            while waiting and waiting[-1] != "(":
                steps.append(("sign", waiting.pop()))
            if not waiting:
                raise fail(at, "no ) without its (")
            waiting.pop()
        elif sign in binding and sign not in prefix.values():
            while waiting and waiting[-1] != "(" and binding[waiting[-1]] >= binding[sign]:
                steps.append(("sign", waiting.pop()))
            waiting.append(sign)
            wanted = True
        else:
            raise fail(at, f"{signs} or )")
        at = token.end()
    if wanted:
        raise fail(end, first)
    while waiting:
        if waiting[-1] == "(":
            raise fail(end, ")")
        steps.append(("sign", waiting.pop()))
    return tuple(steps)


def evaluate(
    steps: Iterable[Step], operand: Callable[[str, Any], _T], combine: Callable[[str, _T | None, _T], _T]
) -> _T:
    """Evaluate steps in postfix order; of a sign before an operand, `combine` gets None for the left one."""
    stack: list[_T] = []
    for kind, word in steps:
        if kind != "sign":
            stack.append(operand(kind, word))
        else:
            right = stack.pop()
            stack.append(combine(word, None if word in ("~", NEGATIVE) else stack.pop(), right))
    return stack.pop()


def chain(text: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the columns of an order and the signs between them; None: it is a predicate."""
    if _CHAIN.fullmatch(text) is None:
        return None
    links = [*_LINK.finditer(text)]
    return tuple(link["name"].strip("`") for link in links), tuple(link["sign"] for link in links[:-1])


def too_many(texts: Sequence[str]) -> list[str]:
    """Tell why predicates are not read at all: there are too many, or they are too long together."""
    letters = sum(map(len, texts))
    wrong = [TOO_MANY] if len(texts) > MAX_RULES else []
    if letters > MAX_RULE_LETTERS:
        wrong.append(f"valid: rules of {letters} characters together, of which up to 2^19 are read")
    return wrong


def joined(faults: Sequence[str]) -> str:
    """Return the first faults, about as many as one reads at a time, and how many more there are."""
    texts = [text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..." for text in faults]
    shown = max(1, sum(end <= MOST_TOLD for end in accumulate(map(len, texts))))
    more = len(texts) - shown
    return "; ".join([*texts[:shown], *([f"and {more} more"] if more else [])])


def quote(name: str) -> str:
    """Write an attribute name as the grammar reads it."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name}`"


def count_text(number: int) -> str:
    """Write a count, which may be too large for its digits to tell anything."""
    return str(number) if number < 10**20 else "more than 10^20"


def shorten(text: str) -> str:
    """Cut a long text for an error line."""
    return text if len(text) <= 60 else text[:57] + "..."


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean ...?"`` where a known word is close, otherwise nothing."""
    close = get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


class Fault(ValueError):
    """What is wrong, and where: of a column the path begins with ``"columns"`` and its name."""

    def __init__(self, message: str, *path: str) -> None:
        self.message, self.path = message, path
        super().__init__(
            f"column {path[1]!r}: {message}" if path[:1] == ("columns",) and path[1:] else message
        )

    @staticmethod
    def of(error: Exception, *path: str) -> Fault:
        """Return the fault that an error tells, of what stands below a path that it may state itself."""
        message, below = (error.message, error.path) if isinstance(error, Fault) else (str(error), ())
        whole = below if below[:1] == path[:1] else (*path, *below)
        return (TypeFault if isinstance(error, TypeError) else Fault)(message, *whole)


class TypeFault(Fault, TypeError):
    """A value of another type."""


class Faults(ValueError):
    """Several faults, told at once: one after another, or as `told` has it."""

    def __init__(self, faults: Iterable[Fault | str], text: str = "") -> None:
        self.each = tuple(each if isinstance(each, Fault) else Fault(each) for each in faults)
        super().__init__(text or joined([*map(str, self.each)]))

"""One recursive-descent parser for the conditions of irace (R) and of PCS; nothing is evaluated."""

from __future__ import annotations

import abc
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from acband_configspace.cli.errors import suggestion
from acband_configspace.cli.spaces.expressions import (
    MIRRORED,
    And,
    Comparison,
    Expression,
    ExpressionError,
    Not,
    Or,
    Relation,
    joined,
)


@dataclass(frozen=True)
class Token:
    """A piece of an expression."""

    kind: str
    """"word", "value" (a literal), "end", or the sign itself."""
    text: str = ""
    as_number: bool = False
    """Whether it stands in ``as.numeric(…)`` or ``as.integer(…)``."""


IsValue = Callable[[str, str], bool]

#: How deeply parentheses may be nested: more is not a condition but an attack on the parser.
DEEPEST = 100

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_TRUTHS = {"TRUE": True, "T": True, "FALSE": False, "F": False}
_NUMBER = r"\d+\.?\d*(?:[eE][-+]?\d+)?L?|\.\d+(?:[eE][-+]?\d+)?"
_R_TOKEN = re.compile(
    rf"""\s*(?:(?P<sign>%in%|&&?|\|\|?|==|!=|<=|>=|<|>|!|\(|\)|,)
    |"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|`(?P<backtick>[^`]+)`
    |(?P<number>{_NUMBER})|(?P<word>[^\W\d_][\w.]*|\.[\w.]*)|(?P<arithmetic>%%|%/%|[-+*/^])
    |(?P<end>$)|(?P<other>.))""",
    re.VERBOSE | re.DOTALL,
)
#: After names that contain what are signs elsewhere.
_PCS_TOKEN = (
    r"(?P<sign>&&|\|\||==|!=|<=|>=|<|>|!|\(|\)|\{|\}|,|=)"
    r'|"(?P<double>[^"]*)"|(?P<word>[^\s(){}|,=<>!&"]+)|(?P<end>$)|(?P<other>.)'
)


def parse_r(text: str, names: Collection[str]) -> Expression:
    """Read a condition as irace has them: ``%in% == != < & | !``, ``c(…)`` and parentheses.

    ``text`` is R, but only this much of it is understood; anything else is refused by name.
    """
    return _RParser(_r_tokens(text), names).parse()


def parse_pcs(
    text: str, names: Collection[str], *, odd_names: Sequence[str], is_value: IsValue
) -> Expression:
    """Read a condition of a PCS file: ``in {…} == != < > && ||`` and parentheses.

    ``odd_names`` are those that contain signs: see :func:`odd_names_of`. ``is_value(name, word)``
    says whether a word is a value of that parameter; otherwise it may be the name of another one.
    """
    return _PcsParser(_pcs_tokens(text, odd_names), names, is_value).parse()


def odd_names_of(names: Collection[str]) -> list[str]:
    """Return the names that contain what are signs elsewhere, the longest first."""
    return sorted((n for n in names if re.search(r"[(){}|,=<>!&\s]", n)), key=len, reverse=True)


def _r_tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    minus = ""
    for match in _R_TOKEN.finditer(text):
        kind, value = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "arithmetic":
            after_operand = bool(tokens) and tokens[-1].kind in ("word", "value", ")")
            if value not in "+-" or after_operand or minus:
                raise ExpressionError(
                    f"arithmetic ({value}) is not supported in {text.strip()!r}; a name with such "
                    "a sign is written in backticks: `a-name`"
                )
            minus = "-" if value == "-" else ""
            continue
        if minus and kind not in ("number", "end"):
            raise ExpressionError(f"'-' must come before a number in {text.strip()!r}")
        match kind:
            case "sign":
                tokens.append(Token(value[0] if value in ("&&", "||") else value, value))
            case "double" | "single":
                tokens.append(Token("value", re.sub(r"\\(.)", r"\1", value)))
            case "number":
                tokens.append(Token("value", minus + value.rstrip("L")))
            case "word" | "backtick":
                tokens.append(Token("word", value))
            case "other":
                raise ExpressionError(f"unexpected {value!r} in {text.strip()!r}")
        minus = ""
    return [*tokens, Token("end")]


def _pcs_tokens(text: str, odd_names: Sequence[str]) -> list[Token]:
    odd = "|".join(re.escape(name) for name in odd_names) or "(?!)"
    tokens: list[Token] = []
    for match in re.finditer(rf"\s*(?:(?P<odd>{odd})|{_PCS_TOKEN})", text, re.DOTALL):
        kind, value = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "other":
            raise ExpressionError(f"unexpected {value!r} in {text.strip()!r}")
        if kind == "sign":
            value = {"&&": "&", "||": "|", "=": "=="}.get(value, value)
            tokens.append(Token(value, value))
        elif kind != "end":
            tokens.append(Token("word", value))
    return [*tokens, Token("end")]


class _Parser(abc.ABC):
    """or := and (``|`` and)*; and := not (``&`` not)*; not := ``!`` not | comparison."""

    conjunctions: tuple[str, ...] = ("&",)

    def __init__(self, tokens: list[Token], names: Collection[str]) -> None:
        self._tokens = tokens
        self._names = names
        self._next = 0

    def parse(self) -> Expression:
        expression = self._either(0)
        if self._peek().kind != "end":
            raise ExpressionError(f"unexpected {self._peek().text!r}")
        return expression

    def _either(self, depth: int) -> Expression:
        parts = [self._all(depth)]
        while self._take("|"):
            parts.append(self._all(depth))
        return joined(Or, parts)

    def _all(self, depth: int) -> Expression:
        parts = [self._negation(depth)]
        while any(self._take(sign) for sign in self.conjunctions):
            parts.append(self._negation(depth))
        return joined(And, parts)

    def _negation(self, depth: int) -> Expression:
        if depth >= DEEPEST:
            raise ExpressionError(f"nested more than {DEEPEST} times")
        if self._take("!"):
            return Not(self._negation(depth + 1))
        if self._take("("):
            inner = self._either(depth + 1)
            self._expect(")")
            return inner
        return self._comparison()

    @abc.abstractmethod
    def _comparison(self) -> Expression:
        """Read what a condition says of one parameter."""

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _pop(self, *kinds: str, wanted: str = "") -> Token:
        """Return the next token, which must be of one of these kinds if any are given."""
        token = self._peek()
        if kinds and token.kind not in kinds:
            self._refuse(wanted, token)
        self._next += token.kind != "end"
        return token

    def _take(self, kind: str) -> bool:
        found = self._peek().kind == kind
        self._next += found
        return found

    def _expect(self, kind: str) -> None:
        self._pop(kind, wanted=repr(kind))

    def _refuse(self, wanted: str, token: Token) -> NoReturn:
        raise ExpressionError(f"expected {wanted} but got {token.text or 'the end'!r}")

    def _known(self, name: str) -> str:
        if name not in self._names:
            hint = suggestion(name, self._names)
            raise ExpressionError(f"{name!r} is not a parameter of this file{hint}")
        return name


class _RParser(_Parser):
    def _comparison(self) -> Expression:
        left = self._operand()
        sign = self._peek().kind
        if left.text in _TRUTHS and left.kind == "word" and sign in ("end", ")", "&", "|"):
            return _TRUTHS[left.text]
        self._pop("%in%", *_COMPARISONS, wanted=f"a comparison after {left.text!r}")
        if sign == "%in%":
            values = self._vector()
            if left.kind != "word":
                self._refuse("a parameter before %in%", left)
            return Comparison(self._known(left.text), "in", values)
        left, right = map(self._truth_as_value, (left, self._operand()))
        match left.kind, right.kind:
            case "value", "value":
                raise ExpressionError(f"{left.text!r} and {right.text!r} are both values")
            case "word", "word":
                return Relation(self._known(left.text), sign, self._known(right.text))
            case "value", _:
                sign, left, right = MIRRORED[sign], right, left
        return Comparison(self._known(left.text), sign, (right.text,), left.as_number)

    def _truth_as_value(self, token: Token) -> Token:
        """Return TRUE and FALSE as values: R compares them with categories as text."""
        is_truth = token.kind == "word" and token.text in _TRUTHS and token.text not in self._names
        return Token("value", _as_text(token)) if is_truth else token

    def _operand(self) -> Token:
        token = self._pop("word", "value", wanted="a parameter or a value")
        if token.kind == "word" and self._take("("):
            if token.text not in ("as.numeric", "as.integer", "as.character"):
                raise ExpressionError(f"the function {token.text!r} is not supported")
            token = replace(self._operand(), as_number=token.text != "as.character")
            self._expect(")")
        return token

    def _vector(self) -> tuple[str, ...]:
        token = self._pop("word", "value", wanted="c(…) after %in%")
        if token.kind == "value":
            return (token.text,)
        if token.text != "c":
            self._refuse("c(…) after %in%", token)
        self._expect("(")
        values: list[str] = []
        while not values or self._take(","):
            token = self._pop()
            is_truth = token.kind == "word" and token.text in _TRUTHS
            if token.kind != "value" and not is_truth:
                self._refuse("a value in c(…)", token)
            values.append(_as_text(token) if is_truth else token.text)
        self._expect(")")
        return tuple(values)


def _as_text(truth: Token) -> str:
    """Return what R makes of TRUE, T, FALSE or F where text is wanted."""
    return str(_TRUTHS[truth.text]).upper()


class _PcsParser(_Parser):
    conjunctions = ("&", ",")

    def __init__(self, tokens: list[Token], names: Collection[str], is_value: IsValue) -> None:
        super().__init__(tokens, names)
        self._is_value = is_value

    def _comparison(self) -> Expression:
        left = self._word()
        sign = self._pop()
        if sign.kind == "word" and sign.text == "in":
            return Comparison(self._known(left), "in", self._values())
        if sign.kind == "word" and sign.text[:1] in "+-*/%^":
            raise ExpressionError(f"arithmetic ({sign.text}) is not supported")
        if sign.kind not in _COMPARISONS:
            self._refuse(f"a comparison after {left!r}", sign)
        right = self._word()
        if left not in self._names and right in self._names:
            return Comparison(right, MIRRORED[sign.kind], (left,))
        self._known(left)
        if right in self._names and not self._is_value(left, right):
            return Relation(left, sign.kind, right)
        return Comparison(left, sign.kind, (right,))

    def _word(self) -> str:
        return self._pop("word", wanted="a parameter or a value").text

    def _values(self) -> tuple[str, ...]:
        if not self._take("{"):
            return (self._word(),)
        values: list[str] = []
        while not values or self._take(","):
            words = [self._word()]
            while self._peek().kind == "word":
                words.append(self._word())
            values.append(" ".join(words))
        self._expect("}")
        return tuple(values)

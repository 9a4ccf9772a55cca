"""One recursive-descent parser for the conditions of irace (R) and of PCS; nothing is evaluated."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

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


#: How deeply parentheses may be nested: more is not a condition but an attack on the parser.
DEEPEST = 100

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_NUMBER = r"\d+\.?\d*(?:[eE][-+]?\d+)?L?|\.\d+(?:[eE][-+]?\d+)?"

_R_TOKEN = re.compile(
    rf"""\s*(?:(?P<sign>%in%|&&?|\|\|?|==|!=|<=|>=|<|>|!|\(|\)|,)
    |"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|`(?P<backtick>[^`]+)`
    |(?P<number>{_NUMBER})|(?P<word>[^\W\d_][\w.]*|\.[\w.]*)|(?P<arithmetic>%%|%/%|[-+*/^])
    |(?P<end>$)|(?P<other>.))""",
    re.VERBOSE | re.DOTALL,
)
_PCS_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>&&|\|\||==|!=|<=|>=|<|>|!|\(|\)|\{|\}|,|=)
    |"(?P<double>[^"]*)"|(?P<word>[^\s(){}|,=<>!&"]+)|(?P<end>$)|(?P<other>.))""",
    re.VERBOSE | re.DOTALL,
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


IsValue = Callable[[str, str], bool]


def _r_tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    negative = False
    for match in _R_TOKEN.finditer(text):
        kind, value = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "end":
            break
        if kind == "arithmetic":
            after_operand = bool(tokens) and tokens[-1].kind in ("word", "value", ")")
            if value not in "+-" or after_operand or negative:
                raise ExpressionError(f"arithmetic ({value}) is not supported in {text.strip()!r}")
            negative = value == "-"
            continue
        if negative and kind != "number":
            raise ExpressionError(f"'-' must come before a number in {text.strip()!r}")
        tokens.append(_r_token(kind, value, negative, text))
        negative = False
    return [*tokens, Token("end")]


def _r_token(kind: str, value: str, negative: bool, text: str) -> Token:
    match kind:
        case "sign":
            return Token(value[0] if value in ("&&", "||") else value, value)
        case "double" | "single":
            return Token("value", re.sub(r"\\(.)", r"\1", value))
        case "number":
            return Token("value", f"{'-' if negative else ''}{value.rstrip('L')}")
        case "word" | "backtick":
            return Token("word", value)
    raise ExpressionError(f"unexpected {value!r} in {text.strip()!r}")


def _pcs_tokens(text: str, odd_names: Sequence[str]) -> list[Token]:
    tokens = []
    odd = [re.escape(name) for name in odd_names if name in text]
    special = re.compile("|".join(odd)) if odd else None
    position = 0
    while position < len(text):
        while text[position : position + 1].isspace():
            position += 1
        if special is not None and (known := special.match(text, position)):
            tokens.append(Token("word", known[0]))
            position = known.end()
            continue
        match = _PCS_TOKEN.match(text, position)
        assert match is not None, "the last alternative takes anything"
        position = match.end()
        kind, value = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "end":
            break
        if kind == "other":
            raise ExpressionError(f"unexpected {value!r} in {text.strip()!r}")
        if kind == "sign":
            value = {"&&": "&", "||": "|", "=": "=="}.get(value, value)
            tokens.append(Token(value, value))
        else:
            tokens.append(Token("word", value))
    return [*tokens, Token("end")]


class _Parser:
    """or := and (``|`` and)*; and := not (``&`` not)*; not := ``!`` not | comparison."""

    conjunctions: tuple[str, ...] = ("&",)

    def __init__(self, tokens: list[Token], names: Collection[str]) -> None:
        self._tokens = tokens
        self._names = names
        self._next = 0
        self._depth = 0

    def parse(self) -> Expression:
        expression = self._either()
        if self._peek().kind != "end":
            raise ExpressionError(f"unexpected {self._peek().text!r}")
        return expression

    def _either(self) -> Expression:
        parts = [self._all()]
        while self._take("|"):
            parts.append(self._all())
        return joined(Or, parts)

    def _all(self) -> Expression:
        parts = [self._negation()]
        while any(self._take(sign) for sign in self.conjunctions):
            parts.append(self._negation())
        return joined(And, parts)

    def _negation(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionError(f"nested more than {DEEPEST} times")
        try:
            if self._take("!"):
                return Not(self._negation())
            if self._take("("):
                inner = self._either()
                self._expect(")")
                return inner
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Expression:
        raise NotImplementedError

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _pop(self) -> Token:
        token = self._tokens[self._next]
        self._next += token.kind != "end"
        return token

    def _take(self, kind: str) -> bool:
        if self._peek().kind != kind:
            return False
        self._pop()
        return True

    def _expect(self, kind: str) -> None:
        found = self._peek()
        if not self._take(kind):
            raise ExpressionError(f"expected {kind!r} but got {found.text or 'the end'!r}")

    def _known(self, name: str) -> str:
        if name not in self._names:
            hint = suggestion(name, self._names)
            raise ExpressionError(f"{name!r} is not a parameter of this file{hint}")
        return name


class _RParser(_Parser):
    def _comparison(self) -> Expression:
        left = self._operand()
        sign = self._pop()
        if sign.kind == "%in%":
            values = self._vector()
            if left.kind != "word":
                raise ExpressionError(f"expected a parameter before %in% but got {left.text!r}")
            return Comparison(self._known(left.text), "in", values)
        if sign.kind not in _COMPARISONS:
            if left.kind == "word" and left.text in _TRUTHS and sign.kind in ("end", ")", "&", "|"):
                self._next -= sign.kind != "end"
                return _TRUTHS[left.text]
            raise ExpressionError(
                f"expected a comparison after {left.text!r} but got {sign.text or 'the end'!r}"
            )
        right = self._operand()
        if left.kind == "value" and right.kind == "value":
            raise ExpressionError(f"{left.text!r} and {right.text!r} are both values")
        if left.kind == "word" and right.kind == "word":
            return Relation(self._known(left.text), sign.kind, self._known(right.text))
        if left.kind == "value":
            return Comparison(self._known(right.text), MIRRORED[sign.kind], (left.text,))
        return Comparison(self._known(left.text), sign.kind, (right.text,))

    def _operand(self) -> Token:
        token = self._pop()
        if token.kind not in ("word", "value"):
            raise ExpressionError(
                f"expected a parameter or a value but got {token.text or 'the end'!r}"
            )
        if token.kind == "word" and self._peek().kind == "(":
            if token.text not in ("as.numeric", "as.integer", "as.character"):
                raise ExpressionError(f"the function {token.text!r} is not supported")
            self._expect("(")
            token = self._operand()
            self._expect(")")
        return token

    def _vector(self) -> tuple[str, ...]:
        token = self._pop()
        if token.kind == "value":
            return (token.text,)
        if token.kind != "word" or token.text != "c":
            raise ExpressionError(f"expected c(…) after %in% but got {token.text or 'the end'!r}")
        self._expect("(")
        values = []
        while True:
            token = self._pop()
            if token.kind != "value" and token.text not in _TRUTHS:
                raise ExpressionError(
                    f"expected a value in c(…) but got {token.text or 'the end'!r}"
                )
            values.append(token.text)
            if not self._take(","):
                break
        self._expect(")")
        return tuple(values)


_TRUTHS = {"TRUE": True, "T": True, "FALSE": False, "F": False}


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
        if sign.kind not in _COMPARISONS:
            if sign.kind == "word" and sign.text[:1] in "+-*/%^":
                raise ExpressionError(f"arithmetic ({sign.text}) is not supported")
            raise ExpressionError(
                f"expected a comparison after {left!r} but got {sign.text or 'the end'!r}"
            )
        right = self._word()
        if left not in self._names and right in self._names:
            return Comparison(right, MIRRORED[sign.kind], (left,))
        self._known(left)
        if right in self._names and not self._is_value(left, right):
            return Relation(left, sign.kind, right)
        return Comparison(left, sign.kind, (right,))

    def _word(self) -> str:
        token = self._pop()
        if token.kind != "word":
            raise ExpressionError(
                f"expected a parameter or a value but got {token.text or 'the end'!r}"
            )
        return token.text

    def _values(self) -> tuple[str, ...]:
        if not self._take("{"):
            return (self._word(),)
        values = [self._phrase()]
        while self._take(","):
            values.append(self._phrase())
        self._expect("}")
        return tuple(values)

    def _phrase(self) -> str:
        words = [self._word()]
        while self._peek().kind == "word":
            words.append(self._word())
        return " ".join(words)

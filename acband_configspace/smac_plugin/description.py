"""What makes two targets the same, in words that the next process finds again.

Targets are told apart by what decides their results. No memory addresses: partials, lambdas, bound
methods and callable objects keep their description from start to start. It has their code, the
values and data they are bound to, what they name of their module (functions, classes, values,
data), and of a command the content of its files. Code of installed packages and what a function
itself assigns to are left out; of dictionaries, sets and objects that a function may change, such
as caches, the class counts. Data that is another in each process (a time, a random number) makes
another run each time.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import hashlib
import os
import shutil
import site
import sys
import sysconfig
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from operator import itemgetter
from pathlib import Path, PurePath
from types import CellType, CodeType, FunctionType, MethodType, ModuleType

import dask.config
import numpy as np
from dask.base import tokenize

#: Their texts are the same in the next process.
_PLAIN = (str, bytes, int, float, complex, bool, type(None), PurePath)
#: Where code lies that is not the user's own, and what its folders are called elsewhere.
_INSTALLED = tuple(
    str(Path(path).resolve())
    for path in (
        *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
        *site.getsitepackages(),
        site.getusersitepackages(),
    )
)
_PACKAGES = {"site-packages", "dist-packages"}
#: What changes data: operations, and names of methods.
_CHANGES = {"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_ATTR"}
_CHANGING = {
    "add", "clear", "discard", "fit", "pop", "popitem", "remove", "set_params", "setdefault",
    "update",
}  # fmt: skip
#: Of data that is nested more deeply only the class counts.
_MOST_NESTED = 30


def describe(target: object) -> str:
    """Return a text that tells targets apart, and is the same in the next process.

    >>> describe(lambda config: 1) == describe(lambda config: 1)
    True
    >>> describe(lambda config: 1) == describe(lambda config: 2)
    False
    """
    if isinstance(target, str):
        return _describe_command([target])
    if isinstance(target, (list, tuple)) and all(isinstance(w, (str, PurePath)) for w in target):
        return _describe_command(target)
    describer = _Describer()
    return describer.with_code(describer.of(target))


def describe_object(one: object) -> str:
    """Return a text that tells objects of a user's own class apart by its code and plain values.

    What it was when it was first described counts: it may change while a run makes use of it.
    """
    with contextlib.suppress(TypeError, KeyError):  # some objects cannot be kept in mind
        return _described[one]
    describer = _Describer()
    text = describer.with_code(describer.of_object(one))
    text = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    text = f"{type(one).__qualname__}:{text}"
    with contextlib.suppress(TypeError):
        _described[one] = text
    return text


_described: weakref.WeakKeyDictionary[object, str] = weakref.WeakKeyDictionary()


def _describe_command(words: Sequence[object]) -> str:
    parts = []
    for word in words:
        parts.append(repr(str(word)))
        path = Path(shutil.which(str(word)) or str(word))
        # A word may be longer than a file's name, and a program may be executed but not read.
        with contextlib.suppress(OSError, ValueError):
            if path.is_file():
                content = path.read_bytes()
                parts.append(hashlib.md5(content, usedforsecurity=False).hexdigest())
    return " ".join(parts)


class _Describer:
    """Describes a target and what it reaches, each function or class once."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, object]] = {}
        self._waiting: deque[FunctionType] = deque()
        self._depth = 0

    def with_code(self, text: str) -> str:
        """Return a text with the code of all functions that it names, and that these name.

        One after the other: a chain of functions may be longer than Python's stack.
        """
        parts = [text]
        while self._waiting:
            parts.append(self._of_code(self._waiting.popleft()))
        return "; ".join(parts)

    def of(self, target: object) -> str:
        """Return the text of a target, or of something that it is bound to."""
        if self._depth == _MOST_NESTED:
            return type(target).__qualname__
        self._depth += 1
        try:
            return self._of(target)
        finally:
            self._depth -= 1

    def _of(self, target: object) -> str:
        if isinstance(target, _PLAIN):
            return repr(target)
        if isinstance(target, (list, tuple)):
            return f"({', '.join(map(self.of, target))})"
        if isinstance(target, functools.partial):
            named = [part for item in sorted(target.keywords.items()) for part in item]
            return f"partial({self.of(target.func)}, {self.of([*target.args, *named])})"
        if isinstance(target, MethodType):
            return f"{self.of(target.__func__)} of {self.of_object(target.__self__)}"
        if isinstance(target, FunctionType):
            return self._of_function(target)
        if isinstance(target, type):
            return self._of_class(target)
        return self.of_object(target) if callable(target) else self._of_data(target)

    def _of_data(self, target: object) -> str:
        """Return the text of data by what it holds; of what is none that we know, its class."""
        kind = type(target)
        if isinstance(target, np.ndarray) and target.dtype == object:
            return f"{kind.__qualname__}{target.shape}{self.of(list(target.flat))}"
        if _is_array(target):
            exactly = dask.config.set({"tokenize.ensure-deterministic": True})
            with contextlib.suppress(Exception), exactly:  # what has no text that stays the same
                return f"{kind.__qualname__}:{tokenize(target)}"
        if isinstance(target, (set, frozenset)) and all(isinstance(one, _PLAIN) for one in target):
            return f"{kind.__qualname__}{sorted(map(repr, target))}"
        if isinstance(target, dict) and self._is_new(target):
            # The environment of the process is another in the next batch job.
            own = [(k, v) for k, v in target.items() if not _is_of_environment(k, v)]
            items = sorted(((self.of(k), v) for k, v in own), key=itemgetter(0))
            return f"{kind.__qualname__}{self.of(items)}"
        if is_dataclass(target) and _is_users(kind) and self._is_new(target):
            held = [(field.name, getattr(target, field.name, None)) for field in fields(target)]
            return f"{self._of_class(kind)}{self.of(held)}"
        with contextlib.suppress(Exception):  # an estimator of scikit-learn, or like those
            held = sorted(target.get_params().items())  # type: ignore[attr-defined]
            return f"{kind.__qualname__}{self.of(held)}"
        return kind.__qualname__

    def _of_function(self, function: FunctionType) -> str:
        if _is_installed(function):
            return function.__qualname__
        if self._is_new(function):
            self._waiting.append(function)
        number, _ = self._seen[id(function)]  # there may be two of one name
        return f"{function.__qualname__}#{number}"

    def _of_code(self, function: FunctionType) -> str:
        cells = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        bound = self.of(_kept([*cells, *defaults], function))
        reached = ", ".join(self._reached(function))
        code = _code_digest(function.__code__)
        return f"{self._of_function(function)}:{code}{bound}[{reached}]"

    def _of_class(self, kind: type) -> str:
        if not self._is_new(kind) or _is_installed(kind):
            return kind.__qualname__
        return f"{kind.__qualname__}:{self.of(_methods(kind))}"

    def of_object(self, target: object) -> str:
        """Return the text of an object: its class, and what it is bound to."""
        if not self._is_new(target):
            return type(target).__qualname__
        attributes = sorted(getattr(target, "__dict__", {}).items())
        bound = [part for item in attributes for part in item]
        kind = type(target)
        methods = [method for method in _methods(kind) if method.__name__ != "__init__"]
        return f"{self._of_class(kind)}{self.of(_kept(bound, *methods))}"

    def _reached(self, function: FunctionType) -> Iterator[str]:
        """Yield what a function names of its module, and of other modules of the user's."""
        names, found = _names(function.__code__), {}
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            if not isinstance(value, ModuleType):
                found[name] = value
            elif not _is_installed(value):
                for attribute in sorted(names & vars(value).keys()):
                    found[f"{name}.{attribute}"] = vars(value)[attribute]
        for name, value in zip(found, _kept([*found.values()], function), strict=True):
            yield f"{name}={self.of(value)}"

    def _is_new(self, thing: object) -> bool:
        """Return whether something is described for the first time: references may be circular."""
        new = id(thing) not in self._seen
        self._seen.setdefault(id(thing), (len(self._seen), thing))  # kept: its id stays its own
        return new


def _is_installed(thing: object) -> bool:
    """Return whether something belongs to Python or to an installed package."""
    if isinstance(thing, type):
        return thing.__module__ == "builtins"
    if isinstance(thing, FunctionType):
        file: str | None = thing.__code__.co_filename
    else:
        file = getattr(thing, "__file__", None)
    if file is None:
        return True
    path = Path(file).resolve()
    return str(path).startswith(_INSTALLED) or not _PACKAGES.isdisjoint(path.parts)


def _is_users(kind: type) -> bool:
    """Return whether a class is of the user's own module."""
    module = sys.modules.get(kind.__module__)
    return kind.__module__ == "__main__" or (module is not None and not _is_installed(module))


def _is_array(thing: object) -> bool:
    """Return whether something is an array of numpy, or of pandas or scipy."""
    with contextlib.suppress(Exception):  # some answer to every name, or raise an error at it
        return callable(getattr(type(thing), "__array__", None)) or hasattr(type(thing), "tocsr")
    return False


def _is_of_environment(key: object, value: object) -> bool:
    return isinstance(key, str) and isinstance(value, str) and os.environ.get(key) == value


def _names(code: CodeType) -> set[str]:
    """Return the names that code, and functions within it, may look up but does not assign to."""
    assigned = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_GLOBAL"}
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names - assigned


def _methods(kind: type) -> list[FunctionType]:
    """Return the functions of a class and its bases."""
    values = [value for base in kind.__mro__ for value in vars(base).values()]
    return [value for value in values if isinstance(value, FunctionType)]


def _kept(values: Sequence[object], *functions: FunctionType) -> list[object]:
    """Return values; of those that functions may change, caches for one, the class only.

    But of arrays and lists what they hold: that is what most targets are about.
    """
    own = (function.__code__ for function in functions if not _is_installed(function))
    if not any(map(_may_change, own)):
        return [*values]
    kept = (*_PLAIN, list, tuple)
    return [
        value if isinstance(value, kept) or callable(value) or _is_array(value) else type(value)
        for value in values
    ]


def _may_change(code: CodeType) -> bool:
    """Return whether code, or a function within it, may change data."""
    within = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    changes = any(step.opname in _CHANGES for step in dis.get_instructions(code))
    return changes or not _CHANGING.isdisjoint(code.co_names) or any(map(_may_change, within))


def _code_digest(code: CodeType) -> str:
    digest = hashlib.md5(code.co_code, usedforsecurity=False)
    digest.update(_describe_constant(code.co_consts).encode())
    digest.update(repr(code.co_names).encode())
    return digest.hexdigest()


def _describe_constant(constant: object) -> str:
    if isinstance(constant, CodeType):  # it prints with its address
        return _code_digest(constant)
    if isinstance(constant, tuple):
        return f"({', '.join(map(_describe_constant, constant))})"
    if isinstance(constant, frozenset):  # what stands in braces; its order is another each time
        return f"{{{', '.join(sorted(map(_describe_constant, constant)))}}}"
    return repr(constant)

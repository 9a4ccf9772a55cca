"""The private names of SMAC and ConfigSpace that the plugin uses exist, and all are listed."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

import ConfigSpace
import pytest
import smac
from private_names import PRIVATE_NAMES

from acband_configspace import smac_plugin

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(smac_plugin.__path__, f"{smac_plugin.__name__}.")
]


VERSIONS = {"smac": f"SMAC {smac.version}", "ConfigSpace": f"ConfigSpace {ConfigSpace.__version__}"}


@pytest.mark.parametrize("path", PRIVATE_NAMES)
def test_the_names_are_still_there(path: str) -> None:
    module, _, name = path.rpartition(".")
    package = VERSIONS[path.partition(".")[0]]
    try:
        cls = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        pytest.fail(f"{package} has no {path} any more", pytrace=False)
    moved = {n: use for n, use in PRIVATE_NAMES[path].items() if n not in private_names(cls)}
    lines = "".join(f"\n  {name}: {use}" for name, use in moved.items())
    assert not moved, f"{package} has moved private names of {path}:{lines}"


def test_the_list_has_all_names_in_use_and_no_others() -> None:
    listed = {f"{path}.{name}" for path, names in PRIVATE_NAMES.items() for name in names}
    of_bases, of_others = set(names_used_in_subclasses()), set(names_of_other_objects())
    last_parts = {full.rpartition(".")[2] for full in listed}
    missing = (of_bases - listed) | (of_others - last_parts)
    assert not missing, f"private_names.py lacks {', '.join(sorted(missing))}"
    unused = {n for n in listed - of_bases if n.rpartition(".")[2] not in of_others}
    assert not unused, f"private_names.py lists, unused, {', '.join(sorted(unused))}"


def private_names(cls: type) -> dict[str, type]:
    """Return the private names of a class of theirs, and which of its bases defines each."""
    names: dict[str, type] = {}
    for base in cls.__mro__:  # from the most special: the most general one stays
        if is_theirs(base):
            assigned = {a.attr for a in attributes(tree_of(base), "self") if is_stored(a)}
            names |= {n: base for n in {*vars(base), *assigned} if is_private(n)}
    return names


def names_used_in_subclasses() -> Iterator[str]:
    """Yield what our subclasses use of, or override in, bases that are not ours."""
    for module in MODULES:
        for cls in vars(module).values():
            if inspect.isclass(cls) and cls.__module__ == module.__name__:
                theirs = private_names(cls)
                tree = tree_of(cls) if theirs else ast.Module([], [])
                used = {a.attr for a in attributes(tree, "self", "super()")}
                used |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
                for name in used & set(theirs):
                    yield f"{theirs[name].__module__}.{theirs[name].__qualname__}.{name}"


def names_of_other_objects() -> Iterator[str]:
    """Yield the private names, not defined by the plugin itself, of objects other than self."""
    trees = [ast.parse(Path(str(module.__file__)).read_text("utf-8")) for module in MODULES]
    functions = {n.name for t in trees for n in ast.walk(t) if isinstance(n, ast.FunctionDef)}
    stored = {a.attr for t in trees for a in attributes(t, "self", "cls") if is_stored(a)}
    classes = [c for t in trees for c in ast.walk(t) if isinstance(c, ast.ClassDef)]
    fields = {
        statement.target.id
        for c in classes
        for statement in c.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }
    of_smac = {name for names in PRIVATE_NAMES.values() for name in names}
    ours = (functions | stored | fields) - of_smac
    for tree in trees:
        of_others = {n for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        of_others -= set(attributes(tree, "self", "cls", "super()"))
        yield from (a.attr for a in of_others if is_private(a.attr) and a.attr not in ours)


def attributes(tree: ast.AST, *owners: str) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in owners:
            yield node


def tree_of(cls: type) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(cls)))


def is_stored(attribute: ast.Attribute) -> bool:
    return isinstance(attribute.ctx, ast.Store)


def is_theirs(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in VERSIONS


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")

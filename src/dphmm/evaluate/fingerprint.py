"""Fingerprints of what a result depends on: the code that made it, libraries, and files it read.

The code of a module is that module and every module of this package that it leads to by imports,
as text without comments, docstrings and empty lines. So a changed sampler gives another
fingerprint, and a changed sentence about it does not. A package that imports its modules by name
(`__getattr__`) leads to all of them. What a parent package does when it is imported is not part of
it, unless something is imported from there: parents only collect names. A name of the room `tables`
leads to the module that has it, such as the made-up city; a package of that room, imported as a
whole, leads nowhere: it reads files, and what it reads is in the digest of the data.
"""

from __future__ import annotations

import ast
import hashlib
import io
import sys
import tokenize
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path

from dphmm.errors import ArgumentError

__all__ = ["code_digest", "code_files", "file_digest", "libraries", "library_digest"]

SOURCE = Path(__file__).resolve().parents[1]
LENGTH = 16
LIBRARIES = ("numpy", "scipy", "numba")
"""Numbers come out of these. Others read files, and what they read is in the digest of the data."""
DATA_ROOM = "tables"
"""Its packages are left out: they read data, which have a digest of their own."""


@cache
def code_digest(module: str, source: Path = SOURCE) -> str:
    """The fingerprint of a module and of all that it imports from this package.

    Args:
        module: Its full name, such as `dphmm.evaluate.late`.
        source: The folder of the package.
    """
    parts = hashlib.sha256()
    for path in code_files(module, source):
        parts.update(f"\0{path.relative_to(source).as_posix()}\0".encode())
        parts.update(_without_words(path.read_text(encoding="utf-8")).encode())
    return parts.hexdigest()[:LENGTH]


def code_files(module: str, source: Path = SOURCE) -> tuple[Path, ...]:
    """The files of a module and of all that it imports from this package, in order."""
    first = _file(module, source)
    if first is None:
        raise ArgumentError(f"module must be one of {source.name}, got {module!r}")
    found, waiting = {module: first}, [module]
    while waiting:
        name = waiting.pop()
        for other in _imports(name, found[name], source):
            path = _file(other, source)
            if other in found or path is None or _reads_data(other, path):
                continue
            found[other] = path
            waiting.append(other)
    return tuple(sorted(set(found.values())))


def file_digest(path: Path) -> str:
    """The fingerprint of a file of data."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:LENGTH]


def libraries() -> dict[str, str]:
    """Python and the libraries that numbers come out of, by name and version.

    Versions that are installed, not those of a lock. Of Python without the last part, which brings
    repairs only.
    """
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python, **{name: f"{name} {version(name)}" for name in LIBRARIES}}


def library_digest() -> str:
    """The fingerprint of the libraries: with others a kept part is measured again."""
    return hashlib.sha256(", ".join(libraries().values()).encode()).hexdigest()[:LENGTH]


def _file(module: str, source: Path) -> Path | None:
    first, *rest = module.split(".")
    if first != source.name:
        return None
    place = source.joinpath(*rest)
    for path in (place / "__init__.py", place.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def _imports(module: str, path: Path, source: Path) -> Iterable[str]:
    """The modules that a module imports when it runs, anywhere in its code."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in _running(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            above = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield _home(base, alias.name, source)
        elif isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            if path.name == "__init__.py":
                yield from (f"{module}.{inner.stem}" for inner in path.parent.glob("*.py"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # Modules that are imported by name.
            if node.value.startswith(f"{source.name}.") and _file(node.value, source):
                yield node.value


def _home(base: str, name: str, source: Path) -> str:
    """The module that a name is imported from; packages that read data are looked through."""
    inner = f"{base}.{name}"
    if _file(inner, source) is not None:
        return inner
    path = _file(base, source)
    if path is None or not _reads_data(base, path):
        return base
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            if any((alias.asname or alias.name) == name for alias in node.names):
                return _home(node.module, name, source)
    return base


def _reads_data(module: str, path: Path) -> bool:
    return path.name == "__init__.py" and module.split(".")[1:2] == [DATA_ROOM]


def _running(tree: ast.AST) -> Iterable[ast.AST]:
    """Every node but those that only type checkers see."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _without_words(code: str) -> str:
    """The code without comments, docstrings and empty lines, line by line."""
    lines = code.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            continue
        for statement in node.body:
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                for row in range(statement.lineno - 1, statement.end_lineno or statement.lineno):
                    lines[row] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())

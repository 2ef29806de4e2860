"""Which module of a crate, or of the Python package, names which: graphs, and the circles in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

Graph = dict[str, set[str]]
USE = re.compile(r"^\s*(?:pub(?:\([\w:]+\))? )?use ([\w:]+(?:\{[\w:{},*\s]*\}|\*)?(?: as \w+)?);", re.M)


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Sets of modules each of which reaches each other of its set (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = set(stack[stack.index(node) :])
            del stack[stack.index(node) :]
            if len(circle) > 1:
                found.append(circle)

    for node in list(graph):
        if node not in index:
            visit(node)
    return found


def _flat(path: str) -> list[str]:
    """`a::{b, c::{d}}` as a::b, a::c::d."""
    before, brace, rest = path.partition("{")
    if not brace:
        return [re.sub(r"\s+as\s+\w+", "", path.strip())]
    parts, depth, part = [], 0, ""
    for char in rest[: rest.rindex("}")]:
        depth += (char == "{") - (char == "}")
        if char == "," and not depth:
            parts.append(part)
            part = ""
        else:
            part += char
    return [each for part in [*parts, part] if part.strip() for each in _flat(before.strip() + part.strip())]


def rust_modules(source: Path) -> dict[tuple[str, ...], Path]:
    """The modules of a crate, given its src."""
    modules = {}
    for file in source.rglob("*.rs"):
        name = file.relative_to(source).with_suffix("").parts
        modules[name[:-1] if name[-1] in ("mod", "lib") else name] = file
    return modules


def rust_graph(source: Path) -> Graph:
    """Uses among the modules of a crate, tests apart. A module declares those in it, which is no use."""
    modules = rust_modules(source)
    graph: Graph = {"::".join(module): set() for module in modules}
    for module, file in modules.items():
        text = re.sub(r"#\[cfg\(test\)\]\s*mod tests \{.*", "", file.read_text(), flags=re.S)
        text = re.sub(r"//.*", "", text)
        paths = [path for use in USE.findall(text) for path in _flat(" ".join(use.split()))]
        paths += re.findall(r"\b(?:crate|super)(?:::\w+)+", text)
        for path in paths:
            words = path.split("::")
            if words[0] not in ("crate", "super", "self"):
                continue
            target = () if words[0] == "crate" else module
            words = words[1:] if words[0] in ("crate", "self") else words
            while words and words[0] == "super":
                target, words = target[:-1], words[1:]
            for word in words:
                if (*target, word) not in modules:
                    break
                target = (*target, word)
            if target in modules and target[: len(module)] != module:
                graph["::".join(module)].add("::".join(target))
    return graph


def rooms(graph: Graph) -> Graph:
    """The same among the folders that hold the modules, at any depth."""
    found: Graph = {}
    for module, others in graph.items():
        for other in others:
            left, right = module.split("::"), other.split("::")
            while left and right and left[0] == right[0]:
                left, right = left[1:], right[1:]
            if len(left) > 1 and len(right) > 1:
                common = module.split("::")[: -len(left)]
                found.setdefault("::".join([*common, left[0]]), set()).add("::".join([*common, right[0]]))
    return found


def python_graph(package: Path) -> Graph:
    """Imports among the modules of a package, wherever they stand in a file."""
    modules = {}
    for file in package.rglob("*.py"):
        name = (package.name, *file.relative_to(package).with_suffix("").parts)
        modules[".".join(name[:-1] if name[-1] == "__init__" else name)] = file
    return {name: {other for other in _imports(name, file, modules) if other != name} for name, file in modules.items()}


def folders(graph: Graph) -> Graph:
    """The imports of a package among what stands side by side in one folder, files and folders, at any depth.

    A package's own `__init__` stands for its folder: it names what is in it, which is no use of a neighbour.
    """
    found: Graph = {}
    for module, others in graph.items():
        for other in others:
            left, right = module.split("."), other.split(".")
            depth = 0
            while depth < min(len(left), len(right)) and left[depth] == right[depth]:
                depth += 1
            if depth < min(len(left), len(right)):
                found.setdefault(".".join(left[: depth + 1]), set()).add(".".join(right[: depth + 1]))
    return found


def _imports(name: str, file: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    own = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = own[: len(own) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            named = [f"{module}.{alias.name}" for alias in node.names]
            yield from (each if each in modules else module for each in named if each in modules or module in modules)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)

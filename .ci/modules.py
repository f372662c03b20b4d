"""Which modules of a crate import which: one module per file, arrows by `use` and by paths in code, and the circles among them.

A name that a module only passes on (`pub use`) counts as an import of the module that has it. What a module needs of the modules in
its own folder is no arrow: they are its parts. Tests are left out.
"""

import os
import re

from rust_source import PATH, Source


class Module:
    """A module in a file of its own."""

    def __init__(self, path, file, source, is_test):
        self.path, self.file, self.source, self.is_test = path, file, source, is_test
        # What names mean here, by imports: absolute paths within the crate.
        self.names = {}
        self.globs = []


class Crate:
    """The modules of a crate that are not tests', and what they import."""

    def __init__(self, root):
        """`root`: the file that the crate begins with."""
        self.modules = {}
        self.files_of_tests = set()
        self._load((), root, os.path.dirname(root), False)
        for module in self.modules.values():
            self._bind(module)

    def _load(self, path, file, folder, is_test):
        with open(file, encoding="utf-8") as opened:
            source = Source(opened.read())
        is_test = is_test or source.is_test
        if is_test:
            self.files_of_tests.add(file)
        else:
            self.modules[path] = Module(path, file, source, is_test)
        for name, of_tests in source.modules().items():
            for child in os.path.join(folder, f"{name}.rs"), os.path.join(folder, name, "mod.rs"):
                if os.path.exists(child):
                    self._load((*path, name), child, os.path.join(folder, name), is_test or of_tests)
                    break

    def _bind(self, module):
        for path, name, _ in module.source.uses():
            if absolute := self.absolute(module, path):
                if path[-1] == "*":
                    module.globs.append(absolute[:-1])
                elif name != "_":
                    module.names[name] = absolute

    def absolute(self, module, path):
        """`path` from the crate's root, or None if it leads into another crate."""
        at, rest = module.path, list(path)
        if rest[0] in ("crate", "$crate"):
            return tuple(rest[1:])
        if rest[0] == "self":
            return at + tuple(rest[1:])
        if rest[0] == "super":
            while rest and rest[0] == "super":
                at, rest = at[:-1], rest[1:]
            return at + tuple(rest)
        return at + tuple(rest) if at + (rest[0],) in self.modules else None

    def home(self, path, seen=()):
        """The module that has what `path` names; None if that is a module, or is not found."""
        length = next(n for n in range(len(path), -1, -1) if path[:n] in self.modules)
        module, rest = self.modules[path[:length]], path[length:]
        if not rest:
            return None
        if path in seen:
            return module
        seen = (*seen, path)
        if rest[0] in module.names:
            return self.home(module.names[rest[0]] + rest[1:], seen)
        for glob in module.globs:
            if glob in self.modules and defines(self.modules[glob], rest[0]):
                return self.home(glob + rest, seen)
        return module

    def arrows(self):
        """Which modules each module needs, by the name of the file."""
        return {module.file: self._needs(module) for module in self.modules.values()}

    def _needs(self, module):
        found = set()
        code = module.source.without_uses()
        words = set(re.findall(r"\w+", code))
        for path, name, public in module.source.uses():
            # What is only passed on is no need of this module.
            if (absolute := self.absolute(module, path)) and (not public or name in words):
                found.add(self.home(absolute))
        for match in PATH.finditer(code):
            path = re.split(r"\s*::\s*", match[1])
            if path[0] in module.names and path[0] != "self":
                found.add(self.home(module.names[path[0]] + tuple(path[1:])))
            elif absolute := self.absolute(module, path):
                found.add(self.home(absolute))
        return {needed.file for needed in found if needed and needed.path[: len(module.path)] != module.path}


def defines(module, name):
    """Whether the module itself has an item of this name."""
    item = rf"\b(?:fn|struct|enum|trait|type|const|static|union|mod|macro_rules!)\s+{re.escape(name)}\b"
    return name in module.names or bool(re.search(item, module.source.code))


def circles(arrows):
    """Sets of modules that need each other (Tarjan's strongly connected components), the largest first."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []

    def open_node(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        return node, iter(sorted(arrows.get(node, ())))

    for root in sorted(arrows):
        work = [] if root in index else [open_node(root)]
        while work:
            node, following = work[-1]
            for needed in following:
                if needed not in index:
                    work.append(open_node(needed))
                    break
                if needed in on_stack:
                    low[node] = min(low[node], index[needed])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    circle = set()
                    while node not in circle:
                        circle.add(stack.pop())
                    on_stack -= circle
                    found.append(circle)
    return sorted(found, key=lambda circle: (-len(circle), sorted(circle)))

"""Reads a Rust file as far as the check of structure needs it: comments, functions, tests, modules and imports."""

import re
from bisect import bisect_right

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])'""",
    re.DOTALL | re.VERBOSE,
)
IMPORT = re.compile(r"(?:pub(?:\s*\([^)]*\))?\s+)?use\b")
SPACE = re.compile(r"\s*")
HEAD_END = re.compile(r"[{;(\[]")
ATTRIBUTE = re.compile(r"#!?\s*\[")
FUNCTION = re.compile(r"fn\s+(\w+)")
MODULE = re.compile(r"mod\s+(\w+)\s*([;{])")
# Patterns that begin with a plain word are found fast, so what may stand before them is looked at afterwards.
USE = re.compile(r"use\s+([^;]+);")
PUBLIC = re.compile(r"\bpub(?:\s*\([^)]*\))?\s+$")
# A path in code that is no method call: `crate::a::b`, `super::c`, `a::b`. `$crate` of a macro is this crate, too.
PATH = re.compile(r"(?<![\w:.])(\w+(?:\s*::\s*\w+)+)")
WORD = re.compile(r"\w+|::|[{},*]")
IS_TEST = re.compile(r"^#\s*\[\s*(?:\w+::)*test\b")
ONLY_IN_TESTS = re.compile(r"^#!?\s*\[\s*cfg\s*\(\s*test\s*\)\s*\]$")


def blank(text):
    """`text` without what is not code (each character a space), and its comments as (line, text) pairs."""
    comments = []
    lines = Lines(text)

    def replace(match):
        if match["comment"]:
            comments.append((lines.number(match.start()), match[0]))
        return re.sub(r"[^\n]", " ", match[0]) if "\n" in match[0] else " " * len(match[0])

    return TOKEN.sub(replace, text), comments


def at_words(pattern, code):
    """Matches of `pattern` that begin where a word begins."""
    for match in pattern.finditer(code):
        before = code[match.start() - 1 : match.start()]
        if not before.isalnum() and before not in ("_", ".", "#"):
            yield match


class Lines:
    """Says on which line a character is."""

    def __init__(self, text):
        self.starts = [0] + [match.end() for match in re.finditer("\n", text)]

    def number(self, at):
        return bisect_right(self.starts, at)


def closing(code):
    """Where each bracket is closed."""
    ends, opened = {}, []
    for match in re.finditer(r"[{}()\[\]]", code):
        if match[0] in "{([":
            opened.append(match.start())
        elif opened:
            ends[opened.pop()] = match.start()
    return ends


class Function:
    """A function: its name, its first line, how many lines it has, and whether it is a test."""

    def __init__(self, name, line, lines, is_test):
        self.name, self.line, self.lines, self.is_test = name, line, lines, is_test


class Source:
    """A Rust file that was read."""

    def __init__(self, text):
        self.code, self.comments = blank(text)
        self.lines = Lines(text)
        self.ends = closing(self.code)
        # Ranges of items that are compiled for tests alone.
        self.test_ranges = []
        # The attributes in front of an item, by where it begins.
        self.attributes = {}
        self._read_attributes()
        self.is_test = any(start == 0 and end == len(self.code) for start, end in self.test_ranges)

    def _read_attributes(self):
        at = 0
        while match := ATTRIBUTE.search(self.code, at):
            attributes, at = [], match.start()
            while match := ATTRIBUTE.match(self.code, at):
                end = self.ends.get(match.end() - 1, len(self.code) - 1) + 1
                attributes.append(self.code[at:end])
                at = SPACE.match(self.code, end).end()
            self.attributes[at] = attributes
            for attribute in attributes:
                if ONLY_IN_TESTS.match(attribute):
                    self.test_ranges.append((0, len(self.code)) if attribute.startswith("#!") else (at, self.end_of_item(at)))

    def end_of_item(self, at):
        """Where the item that begins at `at` ends."""
        place = self._body(at)
        if place is None:
            return len(self.code)
        return (self.ends.get(place, len(self.code) - 1) if self.code[place] == "{" else place) + 1

    def _body(self, at):
        """The brace or semicolon at which the item's head ends; an import's braces belong to its head."""
        is_use = IMPORT.match(self.code, at)
        while match := HEAD_END.search(self.code, at):
            if match[0] == ";" or (match[0] == "{" and not is_use):
                return match.start()
            at = self.ends.get(match.start(), len(self.code)) + 1
        return None

    def in_test(self, at):
        return any(start <= at < end for start, end in self.test_ranges)

    def functions(self):
        """All functions that have a body."""
        tests = {self._name_after(at) for at, attributes in self.attributes.items() if any(map(IS_TEST.match, attributes))}
        for match in at_words(FUNCTION, self.code):
            body = self._body(match.end())
            if body is None or self.code[body] != "{":
                continue
            first, last = self.lines.number(match.start()), self.lines.number(self.ends.get(body, len(self.code) - 1))
            yield match.start(), Function(match[1], first, last - first + 1, match.start() in tests)

    def _name_after(self, at):
        found = FUNCTION.search(self.code, at)
        return found.start() if found else None

    def modules(self):
        """Names of modules in files of their own, each with whether it is compiled for tests alone."""
        return {match[1]: self.in_test(match.start()) for match in at_words(MODULE, self.code) if match[2] == ";"}

    def uses(self):
        """Imports of what is not a test: (path, name it has here, whether it is passed on)."""
        for match in at_words(USE, self.code):
            if not self.in_test(match.start()):
                public = bool(PUBLIC.search(self.code, max(0, match.start() - 40), match.start()))
                for path, name in tree(match[1]):
                    yield path, name, public

    def without_uses(self):
        """The code that is not a test's, without its imports and modules."""
        imports = [match.span() for pattern in (USE, MODULE) for match in at_words(pattern, self.code)]
        kept, at = [], 0
        for start, end in sorted(imports + self.test_ranges):
            kept.append(self.code[at:max(at, start)])
            at = max(at, end)
        return " ".join([*kept, self.code[at:]])


def tree(text):
    """The paths of an import, each with the name it gets: `a::{b, c as d, e::*}` has three."""
    words = iter(WORD.findall(text))

    def branch(prefix):
        path, name = list(prefix), None
        for word in words:
            if word == "{":
                while (yield from branch(path)) != "}":
                    pass
                path = None
            elif word in (",", "}"):
                if path and len(path) > len(prefix):
                    yield path, name or path[-1]
                return word
            elif word == "as":
                name = next(words)
            elif word != "::" and path is not None:
                if word == "self" and path:
                    name = name or path[-1]
                    path.append("self")
                else:
                    path.append(word)
        if path and len(path) > len(prefix):
            yield path, name or path[-1]
        return "}"

    for path, name in branch([]):
        if path[-1] == "self" and len(path) > 1:
            path, name = path[:-1], name if name != "self" else path[-2]
        yield path, name

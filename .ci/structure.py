#!/usr/bin/env python3
"""Holds the structure of the code to ceilings that only fall: a part of `make check`.

Measured are the largest circle of modules and the fullest folder of each crate, long functions, long names of tests, and comments that
begin with a question word. The ceilings are in structure.json; `--write` lowers those that are too high, and raises none.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

from command import ROOT
from modules import Crate, circles
from rust_source import Source

CEILINGS = os.path.join(".ci", "structure.json")
WRITE = "python3 .ci/structure.py --write"
FUNCTION_LINES = 60
NAME_LENGTH = 70
# How many places a sentence names.
NAMED = 12
LONG_NAME = re.compile(r"fn\s+\w{%d}" % (NAME_LENGTH + 1))
QUESTION = re.compile(r"(?:What|Whether|How|Where|Who|Why|When)\b")
MARKER = re.compile(r"///|//!|//|/\*+!?")


class Structure:
    """What was measured: a number of each thing, and the places that make it."""

    def __init__(self):
        self.numbers, self.places = {}, {}

    def set(self, name, number, places):
        self.numbers[name], self.places[name] = number, sorted(places)


def members(root):
    """Folders of the crates of the workspace."""
    with open(os.path.join(root, "Cargo.toml"), encoding="utf-8") as file:
        return re.findall(r'"([^"]+)"', re.search(r"^members = \[(.*?)\]", file.read(), re.DOTALL | re.MULTILINE)[1])


def rust_files(folder):
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        yield from (os.path.join(at, name) for name in sorted(files) if name.endswith(".rs"))


def blocks(comments):
    """Comments, each the first line of those that stand below each other: (line, text)."""
    last_line, last_marker = -1, None
    for line, text in comments:
        marker = MARKER.match(text)[0]
        if line != last_line + 1 or marker != last_marker:
            yield line, text[len(marker):].strip()
        last_line, last_marker = line, marker


def source_of_long_names(file):
    """A file of tests, of which only the names count; None if none is long."""
    with open(file, encoding="utf-8") as opened:
        text = opened.read()
    return Source(text) if LONG_NAME.search(text) else None


def measure(root):
    """Measures the crates of the workspace in `root`."""
    found = Structure()
    long_functions, long_names, questions, of_all = [], [], [], 0
    for member in members(root):
        folder = os.path.join(root, member)
        roots = [os.path.join(folder, "src", name) for name in ("lib.rs", "main.rs")]
        crates = [Crate(path) for path in roots if os.path.exists(path)]
        product = {module.file: module.source for crate in crates for module in crate.modules.values()}
        largest = max((circles(crate.arrows())[0] for crate in crates), key=len)
        found.set(f"circle of {member}", len(largest), (os.path.relpath(file, root) for file in largest))
        by_folder = collections.defaultdict(list)
        for file in product:
            by_folder[os.path.dirname(file)].append(os.path.relpath(file, root))
        fullest = max(by_folder.values(), key=len)
        found.set(f"folder of {member}", len(fullest), fullest)
        for file in sorted(path for part in ("src", "tests", "examples", "benches") for path in rust_files(os.path.join(folder, part))):
            is_product = file in product
            source = product.get(file) or source_of_long_names(file)
            if not source:
                continue
            name = os.path.relpath(file, root)
            for at, function in source.functions():
                if function.is_test:
                    if len(function.name) > NAME_LENGTH:
                        long_names.append(f"{function.name} ({name})")
                elif is_product and function.lines > FUNCTION_LINES and not source.in_test(at):
                    long_functions.append(f"{function.name} ({name})")
            if is_product:
                for line, text in blocks(source.comments):
                    of_all += 1
                    if QUESTION.match(text):
                        questions.append(f"{name}: {text}")
    found.set(f"functions over {FUNCTION_LINES} lines", len(long_functions), long_functions)
    found.set(f"test names over {NAME_LENGTH} characters", len(long_names), long_names)
    # Rounded up to a whole number: it falls rarely, so few changes have to lower it.
    found.set("percent of comments that begin with a question word", -(-100 * len(questions) // max(of_all, 1)), questions)
    return found


def before(root):
    """What was measured when the ceilings were last written; None if that is not known."""
    git = ["git", "-C", root]
    commit = subprocess.run([*git, "log", "-1", "--format=%H", "--", CEILINGS], capture_output=True, text=True, check=False).stdout.strip()
    if not commit:
        return None
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run([*git, "archive", commit], capture_output=True, check=False)
        if archive.returncode or subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=False).returncode:
            return None
        return measure(folder)


def more(places, earlier):
    """The places that were not there earlier; all of them if that is not known, or nothing else grew."""
    left = collections.Counter(places) - collections.Counter(earlier)
    return sorted(left.elements()) or list(places)


def grown(name, number, ceiling, places):
    """A sentence on what is above its ceiling."""
    rest = f", and {len(places) - NAMED} more" if len(places) > NAMED else ""
    return f"{name}: {number}, the ceiling is {ceiling}. New or in it: {', '.join(places[:NAMED])}{rest}."


def judge(found, ceilings, earlier):
    """Sentences on what grew, and on ceilings that are too high. `earlier` measures what was there before, if it is asked."""
    above, below = [], []
    past = None
    for name, number in found.numbers.items():
        ceiling = ceilings.get(name)
        if ceiling is None or number < ceiling:
            below.append(f"{name}: lower the ceiling to {number} (it is {ceiling}): {WRITE}")
        elif number > ceiling:
            past = past or earlier() or Structure()
            above.append(grown(name, number, ceiling, more(found.places[name], past.places.get(name, []))))
    below += [f"{name}: nothing is measured by this name any more: {WRITE}" for name in ceilings if name not in found.numbers]
    return above, below


def lowered(found, ceilings):
    """The ceilings as they may be now: none is raised."""
    return {name: min(number, ceilings.get(name, number)) for name, number in found.numbers.items()}


def read(root=ROOT):
    try:
        with open(os.path.join(root, CEILINGS), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def main(arguments):
    ceilings, found = read(), measure(ROOT)
    if arguments == ["--show"]:
        for name, number in found.numbers.items():
            print(f"\n{name}: {number}", *found.places[name], sep="\n  ")
        return 0
    if arguments == ["--write"]:
        ceilings = lowered(found, ceilings)
        with open(os.path.join(ROOT, CEILINGS), "w", encoding="utf-8") as file:
            file.write(json.dumps(ceilings, indent=2) + "\n")
    above, below = judge(found, ceilings, lambda: before(ROOT))
    for sentence in above + below:
        print(sentence)
    return 1 if above or below else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

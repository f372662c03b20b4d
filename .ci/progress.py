"""Says at least every 30 seconds how far a run is, and looks how long linkers run."""

import os
import re
import threading

import guard
from command import ROOT, RUNNING, say

EVERY = 30.0
# Seconds between two looks at what links.
LOOK = 1.0
LINKERS = {"ld", "ld.bfd", "ld.gold", "ld.lld", "lld", "rust-lld", "mold"}
COMPILED = re.compile(r"^\s+(Compiling|Checking) \S+ v")


class Beat:
    """Prints what `tell` answers while its block runs."""

    def __init__(self, tell, every=EVERY):
        self.tell, self.every = tell, every
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def _beat(self):
        while not self.over.wait(self.every):
            if text := self.tell():
                say(f"--- {text}")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Building:
    """How far the builds are: crates compiled so far, by what Cargo prints."""

    def __init__(self, after):
        self.after, self.crates = after, 0

    def line(self, text):
        if COMPILED.match(text):
            self.crates += 1

    def tell(self):
        with open(os.path.join(ROOT, "Cargo.lock"), encoding="utf-8") as file:
            known = file.read().count("[[package]]")
        runs = "; ".join(RUNNING)
        return f"building: {self.crates} crates compiled (a first build: about {known}), after {self.after():.0f} s, runs: {runs}"


def linkers():
    """How many linkers run below this process."""
    found = 0
    for pid in guard.descendants():
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                found += file.read().strip() in LINKERS
        except OSError:
            pass
    return found


class Linking:
    """Adds up how long linkers run while its block does, by a look each second: good for what it costs, not exact."""

    def __init__(self, count=linkers, look=LOOK):
        self.count, self.look, self.seconds = count, look, 0.0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self):
        while not self.over.wait(self.look):
            self.seconds += self.count() * self.look

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

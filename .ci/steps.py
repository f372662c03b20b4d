#!/usr/bin/env python3
"""Keeps how long the steps of a run took, and shows them beside the last run: steps.py note STEP SECONDS, steps.py end SECONDS

`target/times.json` has those of this run. `make test` writes its own; `.ci/run` adds the steps that follow.
"""

import os
import sys

import cache
from command import ROOT

TIMES = os.path.join(ROOT, "target", "times.json")
# The last run on this machine, by kind of run.
KEPT = "last-run.json"
# In the order in which they are shown. Linking is a part of the builds, in seconds of linkers: two may run at once.
STEPS = ["builds", "linking", "units", "planes", "audit", "conformance", "all"]
# Set by `.ci/run`, which shows one table when all of its steps ended.
GATE = os.environ.get("EMCO_TEST_TABLE") == "later"


def begin(kind):
    """Forgets the run before."""
    cache.write_file(TIMES, {"kind": kind, "processors": os.cpu_count(), "seconds": {}})


def note(seconds):
    """Adds steps to those of this run."""
    times = cache.read_file(TIMES)
    known = {**times.get("seconds", {}), **{step: round(s, 1) for step, s in seconds.items()}}
    cache.write_file(TIMES, {**times, "seconds": known})


def table(now, last):
    """Lines of steps, each in this run and in the last one."""
    if not now:
        return
    yield f"\n{'seconds':<16}{'this run':>10}{'last run':>10}"
    for step in STEPS:
        if step in now or step in last:
            shown = [f"{times[step]:.0f}" if step in times else "-" for times in (now, last)]
            yield f"{step:<16}{shown[0]:>10}{shown[1]:>10}"


def end(seconds):
    """The table of a run that took so long in all. One that ran all tests is the last run from now on."""
    note({"all": seconds})
    times = cache.read_file(TIMES)
    kind, now = times.get("kind", "test"), times["seconds"]
    lines = list(table(now, cache.read(KEPT).get(kind, {})))
    if "planes" in now:
        cache.change(KEPT, lambda kept: {**kept, kind: now})
    return lines


if __name__ == "__main__":
    if sys.argv[1] == "note":
        note({sys.argv[2]: float(sys.argv[3])})
    else:
        print("\n".join(end(float(sys.argv[2]))))

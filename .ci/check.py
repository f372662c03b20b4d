#!/usr/bin/env python3
"""Checks format and structure, lints everything, and runs the unit tests of what changed since they last passed: `make check`.

What passed is remembered by the program's file, in the target folder. Tests on control planes are only linted: `make e2e` runs them.
"""

import json
import os
import sys
import time

import lanes
import programs
import report
from all_tests import TARGET, failure
from command import ROOT, run
from programs import CARGO
from test_output import Summary

PASSED = os.path.join(TARGET, "check.json")
LIMIT_SECONDS = 1200


def mark(path):
    """What tells one build of a program from another."""
    found = os.stat(path)
    return [found.st_mtime_ns, found.st_size]


def passed_before():
    try:
        with open(PASSED, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def changed(found, passed):
    """The unit tests whose program is another one than the one that passed."""
    return [artifact for artifact in found if artifact[1] != "test" and passed.get(artifact[3]) != mark(artifact[3])]


def main():
    start = time.monotonic()
    deadline = start + LIMIT_SECONDS
    summaries, seconds = [], {}
    checks = [
        [CARGO, "fmt", "--all", "--check"],
        [sys.executable, "-B", os.path.join(ROOT, ".ci", "structure.py")],
        [CARGO, "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
    ]
    for command in checks:
        if run(command, deadline):
            summaries = [("check", failure(" ".join(command)))]
            break
    else:
        messages = programs.build(["--lib", "--bins"])
        if messages is None:
            summaries = [("build", failure("cargo test --no-run"))]
        else:
            passed = passed_before()
            found = changed(programs.artifacts(messages), passed)
            running = lanes.Lanes([p for p in programs.programs(found, programs.metadata()) if p.name != "doc"], deadline)
            running.run()
            summaries, seconds = [(p.name, said) for p, said in running.summaries.items()], running.seconds
            good = {p.command[0]: mark(p.command[0]) for p, said in running.summaries.items() if not said.failed}
            # Programs that are gone are forgotten.
            with open(PASSED, "w", encoding="utf-8") as file:
                json.dump({path: m for path, m in {**passed, **good}.items() if os.path.exists(path)}, file)
    total = Summary()
    for _, said in summaries:
        total.add(said)
    print(f"\n--- {time.monotonic() - start:.0f} s")
    for line in report.lines(summaries, seconds, []):
        print(line)
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs all checks and tests, or only the integration tests of the packages named, shows what they print, and ends with the line
`N passed, N failed`.

Exit code 0 only if every check and every test passed, none was left out, and every test program came to its end. A check
that fails (format, generated files, a build) counts as one failure and ends the run. Clippy is a part of the builds, by what
`make test` puts into the environment. A test on control planes that fails is run once more, alone (lanes.py). Only `.ci/run` leaves
out programs, those that passed as they are (unchanged.py).
"""

import os
import subprocess
import sys
import time

import budget
import lanes
import programs
import report
import steps
from command import ROOT, Command, run
from programs import CARGO
from progress import Beat, Building, Linking
from test_output import Summary
from unchanged import Unchanged

TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")))
# Everything together. On a fresh machine with two cores, most of this is for building.
LIMIT_SECONDS = int(os.environ.get("EMCO_TEST_LIMIT_SECONDS", "4800"))


def prepare(packages, deadline, building):
    """Everything before the tests themselves. Answers what failed, or None.

    What tests run beside our own programs (Kubernetes, Helm, Prometheus) is built by our own program, from Go: as soon as that
    one is there, beside all other builds.
    """
    # With an example, libraries get the features that tests want of them, and are not built once more for the tests.
    first = [[CARGO, "build", "--workspace", "--bins", "--example", "crdgen"]]
    e2e = os.path.join(TARGET, "debug", "emco-e2e")
    checks = [[CARGO, "build", "--workspace", "--all-targets"]]
    if not packages:
        first.insert(0, [CARGO, "fmt", "--all", "--check"])
        checks[1:1] = [
            ["make", "check-generated"],
            ["make", "book"],
            [sys.executable, "-B", "-m", "unittest", "discover", "-b", "-s", ".ci", "-p", "*_test.py"],
        ]
    for check in first:
        if run(check, deadline, building.line):
            return " ".join(check)
    other = Command([e2e, "programs"], deadline)
    try:
        for check in checks:
            if run(check, deadline, building.line):
                return " ".join(check)
        return other.name if other.wait() else None
    finally:
        other.end()


class Tests:
    """All test programs: what they said, how long each took, which tests are unsteady, and what was not run since it passed."""

    def __init__(self):
        self.summaries, self.seconds, self.processors, self.unsteady, self.unchanged = [], {}, {}, [], []
        # Whether these are all tests there are.
        self.complete = False

    def build(self, packages, deadline, start):
        """Builds everything, and finds the programs to run. None when that fails."""
        self.complete = not packages
        building = Building(lambda: time.monotonic() - start)
        try:
            # What is read now is not newer than what is built.
            known = Unchanged(programs.metadata())
        except subprocess.CalledProcessError:
            self.summaries.append(("checks", failure("cargo metadata")))
            return None
        with Beat(building.tell), Linking() as linking:
            if failed := prepare(packages, deadline, building):
                self.summaries.append(("checks", failure(failed)))
                return None
            messages = programs.build()
            if messages is None:
                self.summaries.append(("build", failure("cargo test --no-run")))
                return None
        seconds = time.monotonic() - start
        steps.note({"builds": seconds, "linking": linking.seconds})
        print(f"\n--- everything is built, after {seconds:.0f} s", flush=True)
        found, self.unchanged = known.split(programs.programs(programs.artifacts(messages), programs.metadata(), packages))
        return lanes.Lanes(found, deadline, ended=known.ended)

    def run(self, running):
        """Runs the programs, once more what failed on control planes, and looks at their budgets."""
        with Beat(running.tell), running.processors:
            running.run()
            self.unsteady = lanes.repeat(running)
        steps.note({"units": running.computed_at - running.start, "planes": time.monotonic() - running.computed_at})
        self.summaries = [(program.name, summary) for program, summary in running.summaries.items()]
        self.seconds, self.processors = running.seconds, running.processors.by_program()
        # A part of the programs tells nothing about shares of all.
        if self.complete:
            on_planes = {program.name for program in running.summaries if program.on_control_planes}
            self.summaries.append(("budget", budget.bind({name: s for name, s in self.processors.items() if name in on_planes})))


def failure(complaint):
    """A summary of one failure that is no test's."""
    summary = Summary()
    summary.failed = 1
    summary.complaints.append(complaint)
    return summary


def main(packages):
    start = time.monotonic()
    steps.begin("gate" if steps.GATE else " ".join(["test", *packages]))
    tests = Tests()
    try:
        if running := tests.build(packages, start + LIMIT_SECONDS, start):
            tests.run(running)
    except KeyboardInterrupt:
        tests.summaries = [("run", failure("interrupted"))]

    total = Summary()
    for _, summary in tests.summaries:
        total.add(summary)
    if not total.failed and not total.passed and not tests.unchanged:
        tests.summaries.append(("run", failure("no test ran")))
        total.failed = 1
    seconds = time.monotonic() - start
    print(f"\n--- {seconds:.0f} s")
    table = [] if steps.GATE else steps.end(seconds)
    for line in report.lines(tests.summaries, tests.seconds, tests.unsteady, tests.unchanged, table, tests.processors):
        print(line)
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

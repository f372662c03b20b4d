#!/usr/bin/env python3
"""Runs all checks and tests, or only the integration tests of the packages named, shows what they print, and ends with the line
`N passed, N failed`.

Exit code 0 only if every check and every test passed, none was left out, and every test program came to its end. A check
that fails (format, generated files, a build) counts as one failure and ends the run. Clippy is a part of the builds, by what
`make test` puts into the environment. A test on control planes that fails is run once more, alone (lanes.py).
"""

import os
import sys
import time

import lanes
import programs
import report
from command import Command, run
from programs import CARGO
from test_output import Summary

TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", os.path.join(lanes.ROOT, "target")))
# Everything together. On a fresh machine with two cores, most of this is for building.
LIMIT_SECONDS = int(os.environ.get("EMCO_TEST_LIMIT_SECONDS", "4800"))


def prepare(packages, deadline):
    """Everything before the tests themselves. Answers what failed, or None.

    What tests run beside our own programs (Kubernetes, Helm, Prometheus) is built by our own program, from Go: as soon as that
    one is there, beside all other builds. So is what the container image is made of: for a while a build has work for one
    processor alone.
    """
    # With an example, libraries get the features that tests want of them, and are not built once more for the tests.
    first = [[CARGO, "build", "--workspace", "--bins", "--example", "crdgen"]]
    e2e = os.path.join(TARGET, "debug", "emco-e2e")
    checks = [[CARGO, "build", "--workspace", "--all-targets"], [e2e, "before"]]
    if not packages:
        first.insert(0, [CARGO, "fmt", "--all", "--check"])
        checks[1:1] = [
            ["make", "check-generated"],
            ["make", "book"],
            [sys.executable, "-B", "-m", "unittest", "discover", "-b", "-s", ".ci", "-p", "*_test.py"],
        ]
    for check in first:
        if run(check, deadline):
            return " ".join(check)
    # A test looks at the image's programs; they are compared with Helm later, so they cost nothing besides.
    others = [Command([e2e, "programs"], deadline), Command(["make", "static"], deadline)]
    try:
        for check in checks:
            if run(check, deadline):
                return " ".join(check)
        return next((other.name for other in others if other.wait()), None)
    finally:
        for other in others:
            other.end()


def test(packages, deadline):
    """Runs every test program. Answers (name, what it said) of each, seconds of each, and which tests are unsteady."""
    messages = programs.build()
    if messages is None:
        return [("build", failure("cargo test --no-run"))], {}, []
    found = programs.programs(programs.artifacts(messages), programs.metadata(), packages)
    running = lanes.Lanes(found, deadline)
    running.run()
    unsteady = lanes.repeat(running)
    return [(program.name, summary) for program, summary in running.summaries.items()], running.seconds, unsteady


def failure(complaint):
    """A summary of one failure that is no test's."""
    summary = Summary()
    summary.failed = 1
    summary.complaints.append(complaint)
    return summary


def main(packages):
    start = time.monotonic()
    deadline = start + LIMIT_SECONDS
    seconds, unsteady = {}, []
    try:
        if failed := prepare(packages, deadline):
            summaries = [("checks", failure(failed))]
        else:
            print(f"\n--- everything is built, after {time.monotonic() - start:.0f} s", flush=True)
            summaries, seconds, unsteady = test(packages, deadline)
    except KeyboardInterrupt:
        summaries = [("run", failure("interrupted"))]

    total = Summary()
    for _, summary in summaries:
        total.add(summary)
    if not total.failed and not total.passed:
        summaries.append(("run", failure("no test ran")))
        total.failed = 1
    print(f"\n--- {time.monotonic() - start:.0f} s")
    for line in report.lines(summaries, seconds, unsteady):
        print(line)
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Runs all checks and tests, or only those of the packages named, shows what they print, and ends with the line
`N passed, N failed`.

Exit code 0 only if every check and every test passed, none was left out, and every test program came to its end. A check
that fails (format, clippy, generated files, a build) counts as one failure and ends the run.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CARGO = os.environ.get("CARGO", "cargo")
# A test that hangs must not hold up everything for ever. Cold on two cores all of it takes half of this.
LIMIT_SECONDS = int(os.environ.get("EMCO_TEST_LIMIT_SECONDS", "4500"))

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
BEGUN = re.compile(r"^\s+(Running .*\(.*\)|Doc-tests \S+)$")
RESULT = re.compile(r"^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored; \d+ measured; (\d+) filtered out")
FAILED = re.compile(r"^test (.+) \.\.\. FAILED")


class Summary:
    """What the output of `cargo test` says."""

    def __init__(self):
        self.passed = self.failed = 0
        self.running = None
        self.complaints = []

    def line(self, text):
        text = COLOURS.sub("", text).rstrip()
        if BEGUN.match(text):
            self.end()
            self.running = text.strip()
        elif result := RESULT.match(text):
            passed, failed, ignored, _ = map(int, result.groups())
            self.passed += passed
            self.failed += failed + ignored
            if ignored:
                self.complaints.append(f"{ignored} ignored in {self.running}: nothing may be left out")
            self.running = None
        elif failed := FAILED.match(text):
            self.complaints.append(f"{failed[1]} in {self.running}")

    def end(self):
        """The program that ran has no more to say: without a result it crashed."""
        if self.running:
            self.failed += 1
            self.complaints.append(f"no result of {self.running}: it crashed or was ended")
            self.running = None


def run(command, deadline, on_line=None):
    """Runs a command, passes on what it prints line by line, and answers its exit code."""
    print(f"\n--- {' '.join(command)}", flush=True)
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        start_new_session=True,
    )

    def end(code=signal.SIGTERM):
        try:
            os.killpg(process.pid, code)
        except ProcessLookupError:
            pass

    def too_long():
        print(f"--- this takes longer than {LIMIT_SECONDS} s in all: ending it", flush=True)
        end(signal.SIGKILL)

    timer = threading.Timer(max(1.0, deadline - time.monotonic()), too_long)
    timer.daemon = True
    timer.start()
    try:
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            if on_line:
                on_line(line)
        return process.wait()
    except KeyboardInterrupt:
        end()
        process.wait()
        raise
    finally:
        timer.cancel()
        process.stdout.close()


def main(packages):
    start = time.monotonic()
    deadline = start + LIMIT_SECONDS
    selected = [flag for package in packages for flag in ("-p", f"emco-{package}")] or ["--workspace"]
    checks = [[CARGO, "run", "-p", "emco-e2e", "--", "programs"]]
    if not packages:
        checks = [
            [CARGO, "fmt", "--all", "--check"],
            [CARGO, "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
            ["make", "check-generated"],
            [sys.executable, "-B", "-m", "unittest", "discover", "-s", ".ci", "-p", "*_test.py"],
            *checks,
        ]
    # Tests start our programs, and Cargo builds only those of the package that is tested.
    checks += [[CARGO, "build", "--workspace", "--bins"], [CARGO, "test", "--no-run", *selected]]
    # What the container image is made of, and what is compared with Helm later, so it costs nothing besides. A test looks at it.
    checks.append(["make", "static"])

    summary = Summary()
    try:
        for check in checks:
            if run(check, deadline):
                summary.failed += 1
                summary.complaints.append(" ".join(check))
                break
        else:
            code = run([CARGO, "test", "--no-fail-fast", *selected], deadline, summary.line)
            summary.end()
            if code and not summary.failed:
                summary.failed += 1
                summary.complaints.append(f"cargo test ended with {code}")
    except KeyboardInterrupt:
        summary.failed += 1
        summary.complaints.append("interrupted")

    print(f"\n--- {time.monotonic() - start:.0f} s")
    for complaint in summary.complaints:
        print(f"failed: {complaint}")
    if not summary.failed and not summary.passed:
        summary.failed = 1
        print("failed: no test ran")
    print(f"{summary.passed} passed, {summary.failed} failed", flush=True)
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Runs all checks and tests, or only those of the packages named, shows what they print, and ends with the line
`N passed, N failed`.

Exit code 0 only if every check and every test passed, none was left out, and every test program came to its end. A check
that fails (format, generated files, a build) counts as one failure and ends the run. Clippy is a part of the builds, by what
`make test` puts into the environment.
"""

import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CARGO = os.environ.get("CARGO", "cargo")
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
# A test that hangs must not hold up everything for ever. On a fresh machine with two cores, most of this is for building.
LIMIT_SECONDS = int(os.environ.get("EMCO_TEST_LIMIT_SECONDS", "4800"))
# Test programs that run at once. Those on real control planes wait more than they work.
LANES = int(os.environ.get("EMCO_TEST_LANES", "2"))

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

    def add(self, other):
        """What another one says, too."""
        self.passed += other.passed
        self.failed += other.failed
        self.complaints += other.complaints

    def end(self):
        """The program that ran has no more to say: without a result it crashed."""
        if self.running:
            self.failed += 1
            self.complaints.append(f"no result of {self.running}: it crashed or was ended")
            self.running = None


class Command:
    """A command that runs, and what it prints, line by line, passed on as it comes."""

    def __init__(self, command, deadline, on_line=None, prefix=""):
        print(f"\n--- {' '.join(command)}", flush=True)
        self.name = " ".join(command)
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            start_new_session=True,
        )
        self.on_line, self.prefix = on_line, prefix
        self.timer = threading.Timer(max(1.0, deadline - time.monotonic()), self._too_long)
        self.timer.daemon = True
        self.timer.start()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        with self.process.stdout as lines:
            for line in lines:
                sys.stdout.write(self.prefix + line)
                sys.stdout.flush()
                if self.on_line:
                    self.on_line(line)

    def _too_long(self):
        print(f"--- this takes longer than {LIMIT_SECONDS} s in all: ending it", flush=True)
        self.end(signal.SIGKILL)

    def end(self, code=signal.SIGTERM):
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, code)
            except ProcessLookupError:
                pass

    def wait(self):
        """Its exit code, when all that it printed was read."""
        try:
            self.reader.join()
            return self.process.wait()
        except KeyboardInterrupt:
            self.end()
            self.process.wait()
            raise
        finally:
            self.timer.cancel()


def run(command, deadline, on_line=None):
    """Runs a command, passes on what it prints line by line, and answers its exit code."""
    return Command(command, deadline, on_line).wait()


def prepare(packages, deadline):
    """Everything before the tests themselves. Answers what failed, or None.

    What tests run beside our own programs (Kubernetes, Helm, Prometheus) is built by our own program, from Go: as soon as that
    one is there, beside all other builds.
    """
    # With an example, libraries get the features that tests want of them, and are not built once more for the tests.
    first = [[CARGO, "build", "--workspace", "--bins", "--example", "crdgen"]]
    # What the container image is made of, and what is compared with Helm later, so it costs nothing besides. A test looks at it.
    checks = [[CARGO, "build", "--workspace", "--all-targets"], ["make", "static"]]
    if not packages:
        first.insert(0, [CARGO, "fmt", "--all", "--check"])
        checks[1:1] = [
            ["make", "check-generated"],
            ["make", "book"],
            [sys.executable, "-B", "-m", "unittest", "discover", "-s", ".ci", "-p", "*_test.py"],
        ]
    for check in first:
        if run(check, deadline):
            return " ".join(check)
    programs = Command([os.path.join(TARGET, "debug", "emco-e2e"), "programs"], deadline)
    try:
        for check in checks:
            if run(check, deadline):
                return " ".join(check)
        return programs.name if programs.wait() else None
    finally:
        programs.end()


def programs_of_tests(packages):
    """Name and flags for Cargo of each test program: all unit tests, which take long, each other one by itself, and all
    examples in documentation. Of packages that are named, only the others. (Always of the whole workspace: of a single package,
    Cargo chooses other features of libraries, and builds everything anew.)"""
    answer = subprocess.run(
        [CARGO, "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    wanted = [p for p in json.loads(answer.stdout)["packages"] if not packages or p["name"][5:] in packages]
    names = {t["name"] for p in wanted for t in p["targets"] if "test" in t["kind"]}
    programs = [(name, ["--test", name]) for name in sorted(names)]
    return programs if packages else [("unit", ["--lib", "--bins"]), *programs, ("doc", ["--doc"])]


def test(packages, deadline):
    """Runs every test program, some of them at once. Answers the sum of what they say."""
    running = set()

    def run_one(program):
        name, flags = program
        summary = Summary()
        command = Command(
            [CARGO, "test", "--no-fail-fast", "--workspace", *flags], deadline, summary.line, f"{name}: "
        )
        running.add(command)
        code = command.wait()
        running.discard(command)
        summary.end()
        if code and not summary.failed:
            summary.failed += 1
            summary.complaints.append(f"cargo test {' '.join(flags)} ended with {code}")
        return summary

    total = Summary()
    lanes = concurrent.futures.ThreadPoolExecutor(LANES)
    try:
        for summary in lanes.map(run_one, programs_of_tests(packages)):
            total.add(summary)
    except KeyboardInterrupt:
        lanes.shutdown(wait=False, cancel_futures=True)
        for command in list(running):
            command.end()
        raise
    return total


def main(packages):
    start = time.monotonic()
    deadline = start + LIMIT_SECONDS
    summary = Summary()
    try:
        if failed := prepare(packages, deadline):
            summary.failed += 1
            summary.complaints.append(failed)
        else:
            summary = test(packages, deadline)
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

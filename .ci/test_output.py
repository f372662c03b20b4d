"""Reads what test programs print: results, why tests failed, and how long each took."""

import re

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
BEGUN = re.compile(r"^\s+(Running .*\(.*\)|Doc-tests \S+)$")
RESULT = re.compile(r"^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored; \d+ measured; (\d+) filtered out")
TIMED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. ok <([\d.]+)s>$")
FAILED = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. FAILED(?: <([\d.]+)s>)?$")
# A test, or a part of it, that cannot be run on this machine. It writes past the harness, so on the harness's own line now and then.
SKIPPED = re.compile(r"(?:^|\.\.\. )skipped: (\S.*?): (\S.*)$")
# What a failed test printed begins so; why it failed stands between its panic and the backtrace.
PRINTED = re.compile(r"^---- (.+) stdout ----$")
PANIC = re.compile(r"^thread '.*' .*panicked at ")
BACKTRACE = re.compile(r"^stack backtrace:$", re.IGNORECASE)
# Lines of a cause that are repeated at the end.
CAUSE_LINES = 40


class Summary:
    """What the output of one or more test programs says."""

    def __init__(self):
        self.passed = self.failed = 0
        self.running = None
        self.complaints = []
        # Names of failed tests.
        self.failures = []
        # Why tests failed, as they said themselves: a name, then lines.
        self.causes = []
        self.in_cause = False
        # Name and seconds of each test.
        self.times = []
        # What was left out on this machine, and why.
        self.skipped = []

    def cause(self, text):
        """Keeps a line of why a test failed. The end of a long output is all that some people get to see."""
        if printed := PRINTED.match(text):
            self.causes.append([printed[1]])
        elif self.causes and PANIC.match(text):
            self.in_cause = True
        elif BACKTRACE.match(text) or text.startswith("note: "):
            self.in_cause = False
        if self.in_cause and len(self.causes[-1]) <= CAUSE_LINES:
            self.causes[-1].append(text)

    def reason(self, test):
        """The first words of why `test` failed, on one line."""
        for name, *lines in self.causes:
            if name == test:
                return next((line.strip() for line in lines[1:] if line.strip()), " ".join(lines).strip())[:300]
        return ""

    def line(self, text):
        text = COLOURS.sub("", text).rstrip()
        self.cause(text)
        if BEGUN.match(text):
            self.begin(text.strip())
        elif result := RESULT.match(text):
            passed, failed, ignored, _ = map(int, result.groups())
            self.passed += passed
            self.failed += failed + ignored
            if ignored:
                self.complaints.append(f"{ignored} ignored in {self.running}: nothing may be left out")
            self.running = None
            self.in_cause = False
        elif skipped := SKIPPED.search(text):
            if skipped.groups() not in self.skipped:
                self.skipped.append(skipped.groups())
        elif failed := FAILED.match(text):
            self.failures.append(failed[1])
            self.times.append((failed[1], float(failed[2] or 0)))
        elif timed := TIMED.match(text):
            self.times.append((timed[1], float(timed[2])))

    def add(self, other):
        """What another one says, too."""
        self.passed += other.passed
        self.failed += other.failed
        self.complaints += other.complaints
        self.failures += other.failures
        self.causes += other.causes
        self.times += other.times
        self.skipped += [entry for entry in other.skipped if entry not in self.skipped]

    def begin(self, program):
        """A program starts, which has to say a result."""
        self.end()
        self.running = program

    def end(self):
        """The program that ran has no more to say: without a result it crashed."""
        if self.running:
            self.failed += 1
            self.complaints.append(f"no result of {self.running}: it crashed or was ended")
            self.running = None

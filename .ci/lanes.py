"""Runs test programs: those that compute one after the other, then those on control planes in lanes."""

import os
import re
import threading
import time

import cache
from command import ROOT, Command
from processors import Processors
from room import Room
from test_output import Summary

# How many programs on control planes run at once at most, where there is room, after all that computes. What computes runs alone before
# them: beside one of them, with its dozens of processes, it got 9 to 25 % of two processors, and was ended for taking too long; with those
# at a lower priority, their API servers did not answer in three minutes.
LANES = int(os.environ.get("EMCO_TEST_LANES", "4"))
# A test program that hangs must not hold up the others for ever.
PROGRAM_SECONDS = 1800
TIMES = "times.json"
# Tests on control planes that may fail once in a run and then pass alone.
UNSTEADY = 2
UNSTEADY_DIR = os.path.join(ROOT, "target", "unsteady")


class Lanes:
    """The programs that wait to run, those that run, and what they said."""

    def __init__(self, programs, deadline, room=None, ended=None):
        times = known_times()
        # Longest first; one that nobody has timed is taken for long.
        order = sorted(programs, key=lambda program: -times.get(program.name, float("inf")))
        self.waiting = {
            True: [p for p in order if p.on_control_planes], False: [p for p in order if not p.on_control_planes],
        }
        self.deadline = deadline
        self.total = len(programs)
        self.lock = threading.Lock()
        # Commands that run, with the names of their programs.
        self.running = {}
        # Is called with each program that ended, what it said, and its seconds.
        self.ended = ended or (lambda *_: None)
        self.start, self.computed_at = time.monotonic(), None
        self.stopped = False
        self.computed = threading.Event()
        self.room = room or Room()
        # What each program uses; looks while its block runs.
        self.processors = Processors()
        # Of each program, in the order in which they end.
        self.summaries = {}
        self.seconds = {}
        self.outputs = {}

    def run(self):
        lanes = [threading.Thread(target=self.lane, args=(number,)) for number in range(LANES)]
        for lane in lanes:
            lane.start()
        try:
            for lane in lanes:
                # A join without a limit cannot be interrupted.
                while lane.is_alive():
                    lane.join(1)
        except KeyboardInterrupt:
            self.stopped = True
            self.computed.set()
            with self.lock:
                for command in self.running:
                    command.end()
            raise

    def tell(self):
        """How far the programs are."""
        with self.lock:
            names = sorted(self.running.values())
            runs = f"{len(names)} run{'s' if len(names) == 1 else ''} ({', '.join(names)})" if names else "none runs"
            ended = f"{len(self.summaries)} of {self.total} programs ended"
        return f"{ended}, {runs}, after {time.monotonic() - self.start:.0f} s"

    def lane(self, number):
        """The first lane goes on whatever the others do; each other one waits for room before each program."""
        if number:
            self.computed.wait()
        while not self.stopped:
            with self.lock:
                if not self.waiting[False] and not self.computed.is_set():
                    self.computed_at = time.monotonic()
                    self.computed.set()
                waiting = self.waiting[False] or self.waiting[True]
                if not waiting:
                    return
                program = waiting.pop(0) if not number or self.room.is_there() else None
                if program:
                    self.room.take()
            if not program:
                time.sleep(1)
                continue
            start = time.monotonic()
            summary, output = self.run_one(program, program.command)
            with self.lock:
                self.summaries[program] = summary
                self.outputs[program] = output
                self.seconds[program.name] = time.monotonic() - start
                # Of a run that is cut off, too.
                remember_times({program.name: self.seconds[program.name]})
            self.ended(program, summary, self.seconds[program.name])

    def run_one(self, program, arguments):
        """Runs one program, and answers what it says and all that it printed."""
        summary, output = Summary(), []
        if program.name != "doc":
            summary.begin(program.name)

        def line(text):
            output.append(text)
            summary.line(text)

        deadline = min(self.deadline, time.monotonic() + PROGRAM_SECONDS)
        command = Command(arguments, deadline, line, f"{program.name}: ", program.cwd, program.environment())
        self.processors.begins(command.process.pid, program.name)
        with self.lock:
            self.running[command] = program.name
        code = command.wait()
        with self.lock:
            self.running.pop(command, None)
        summary.end()
        if code and not summary.failed:
            summary.failed += 1
            summary.complaints.append(f"{program.name} ended with {code}")
        return summary, output


def known_times():
    """Seconds by name of program, as the last run left them."""
    try:
        return {name: float(seconds) for name, seconds in cache.read(TIMES).items()}
    except (ValueError, TypeError):
        return {}


def remember_times(seconds):
    """Keeps times for the next run."""
    cache.change(TIMES, lambda _: {**known_times(), **seconds})


def repeat(lanes):
    """Runs once more, alone, what failed on control planes. Answers what passes then: names with the first failure's words.

    What passes alone is no failure any more: its first summary is made up for. More than a few are one: then nothing is run again,
    for the run has failed either way.
    """
    failed = [p for p, summary in lanes.summaries.items() if p.on_control_planes and summary.failed]
    tests = sum(max(len(lanes.summaries[p].failures), 1) for p in failed)
    others = any(summary.failed for p, summary in lanes.summaries.items() if not p.on_control_planes)
    if not failed or tests > UNSTEADY or others:
        return []
    unsteady = []
    for program in failed:
        first = lanes.summaries[program]
        # Without the name of a test (it crashed) the whole program is repeated.
        arguments = program.only(first.failures) if first.failures else program.command
        second, output = lanes.run_one(program, arguments)
        keep(program, lanes.outputs[program], output)
        if second.failed or second.passed < len(first.failures):
            continue
        names = first.failures or [program.name]
        unsteady += [(f"{name} in {program.name}", first.reason(name) or "; ".join(first.complaints)) for name in names]
        made_up = Summary()
        made_up.passed = first.passed + len(first.failures) if first.failures else second.passed
        made_up.times = first.times
        lanes.summaries[program] = made_up
    return unsteady


def keep(program, *outputs):
    """Keeps the outputs of a program that failed first, the first failure and the second try."""
    os.makedirs(UNSTEADY_DIR, exist_ok=True)
    for number, output in enumerate(outputs, 1):
        name = re.sub(r"[^\w.-]", "-", program.name)
        with open(os.path.join(UNSTEADY_DIR, f"{name}-{number}.log"), "w", encoding="utf-8") as file:
            file.writelines(output)

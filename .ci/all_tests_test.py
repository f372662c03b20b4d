"""What is made of the output of test programs, and what the end of a run says."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cache
import lanes
import report
from command import run
from guard import descendants
from programs import Program, artifacts, metadata, programs
from room import Room
from test_output import Summary

UNIT = "     Running unittests src/lib.rs (target/debug/deps/emco_engine-0123)\n"
DOC = "   Doc-tests emco_helm\n"
HERE = os.path.dirname(os.path.abspath(__file__))


def result(passed, failed=0, ignored=0):
    verdict = "FAILED" if failed else "ok"
    return f"test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out; finished in 0.1s\n"


def summary(*lines):
    made = Summary()
    for line in lines:
        made.line(line)
    made.end()
    return made


def failing(name="place::a_fact", why="no water"):
    """What a program prints whose test `name` fails."""
    panic = f"thread '{name}' (6612) panicked at a.rs:16:47:\n"
    return [f"test {name} ... FAILED <1.5s>\n", "failures:\n", f"---- {name} stdout ----\n", panic, f"{why}\n", result(1, failed=1)]


class Output(unittest.TestCase):
    def test_results_of_all_programs_are_added_up(self):
        made = summary(UNIT, result(3), DOC, result(2, failed=1))
        self.assertEqual((made.passed, made.failed), (5, 1))

    def test_colours_do_not_matter(self):
        made = summary("\x1b[1m\x1b[92m     Running\x1b[0m tests/a.rs (target/debug/deps/a-1)\n", result(1))
        self.assertEqual((made.passed, made.failed), (1, 0))

    def test_a_program_that_crashed_is_a_failure(self):
        made = summary(UNIT, "test a ... ok\n", DOC, result(2))
        self.assertEqual((made.passed, made.failed), (2, 1))
        self.assertIn("crashed", made.complaints[0])
        self.assertEqual(summary(UNIT).failed, 1)

    def test_what_was_left_out_is_a_failure(self):
        self.assertEqual(summary(UNIT, result(2, ignored=1)).failed, 1)

    def test_sums_are_added_up(self):
        made = summary(UNIT, result(3))
        made.add(summary(UNIT, *failing()))
        self.assertEqual((made.passed, made.failed, made.failures), (4, 1, ["place::a_fact"]))

    def test_times_of_tests_are_read(self):
        made = summary(UNIT, "test a::b ... ok <0.250s>\n", "test c - should panic ... ok <3s>\n", *failing())
        self.assertEqual(made.times, [("a::b", 0.25), ("c", 3.0), ("place::a_fact", 1.5)])

    def test_why_tests_failed_is_said_without_what_else_they_printed(self):
        panic = "thread 'place::a_fact' (6612) panicked at a.rs:16:47:\n"
        lines = ["failures:\n", "\n", "---- place::a_fact stdout ----\n", "much else\n", panic, "no water\n"]
        made = summary(UNIT, *lines, "stack backtrace:\n", "   0: main\n", result(0, failed=1))
        self.assertEqual(made.causes, [["place::a_fact", panic.rstrip(), "no water"]])
        self.assertEqual(made.reason("place::a_fact"), "no water")
        made = summary(UNIT, *lines, *["more\n"] * 1000, result(0, failed=1))
        self.assertLess(len(made.causes[0]), 50)


    def test_what_is_skipped_on_this_machine_is_named_and_no_failure(self):
        lines = ["skipped: fish: neither root nor network\n", "test a::b ... skipped: zsh: no network\n", "ok <0.1s>\n"]
        made = summary(*lines, lines[0], result(2))
        self.assertEqual(made.skipped, [("fish", "neither root nor network"), ("zsh", "no network")])
        self.assertEqual((made.passed, made.failed), (2, 0))
        said = list(report.lines([("cli", made)], {}, []))
        self.assertEqual(said[0], "2 skipped on this machine:")
        self.assertIn("skipped: zsh in cli: no network", said)


class Always:
    """There is always room."""

    def take(self):
        pass

    def is_there(self):
        return True


class Running(unittest.TestCase):
    def test_every_test_program_is_run_once(self):
        folder = {p["name"]: os.path.dirname(p["manifest_path"]) for p in metadata()}
        found = [
            (folder["emco-engine"], "lib", "emco_engine", "/x/emco_engine-1", True),
            (folder["emco-e2e"], "test", "deploy", "/x/deploy-1", True),
            (folder["emco-operator"], "test", "process", "/x/process-1", True),
        ]
        made = programs(found, metadata())
        self.assertEqual([p.name for p in made], ["engine: unit tests", "deploy", "operator: process", "doc"])
        self.assertEqual([p.on_control_planes for p in made], [False, True, False, False])
        self.assertEqual([p.package for p in made], ["emco-engine", "emco-e2e", "emco-operator", None])
        self.assertEqual([p.name for p in programs(found, metadata(), ["operator"])], ["operator: process"])

    def test_soak_tests_are_left_to_soak(self):
        folder = {p["name"]: os.path.dirname(p["manifest_path"]) for p in metadata()}
        found = [
            (folder["emco-engine"], "lib", "emco_engine", "/x/emco_engine-1", True),
            (folder["emco-e2e"], "test", "deploy", "/x/deploy-1", True),
            (folder["emco-e2e"], "lib", "emco_e2e", "/x/emco_e2e-1", True),
        ]
        made = {p.name: p for p in programs(found, metadata())}
        left = {name: "--skip soak::" in " ".join(p.command) for name, p in made.items()}
        self.assertEqual(left, {"engine: unit tests": True, "deploy": True, "e2e: unit tests": False, "doc": False})
        self.assertIn("--skip soak:: --exact a::b", " ".join(made["deploy"].only(["a::b"])))

    def test_a_program_of_soak_tests_alone_has_passed(self):
        with tempfile.TemporaryDirectory() as folder:
            cache.FOLDER = folder
            text = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out; finished in 0.00s"
            ended = []
            program = Program("starts", ["echo", text], on_control_planes=True)
            running = lanes.Lanes([program], time.monotonic() + 60, ended=lambda *what: ended.append(what))
            running.run()
            (said,) = running.summaries.values()
        self.assertEqual((said.passed, said.failed, said.complaints), (0, 0, []))
        self.assertEqual(ended, [(program, said, running.seconds["starts"])])

    def test_how_far_a_run_is_names_what_runs(self):
        running = lanes.Lanes([Program(n, [], on_control_planes=True) for n in ("deploy", "crash", "new")], 0)
        self.assertIn("0 of 3 programs ended, none runs, after ", running.tell())
        running.running = {1: "deploy", 2: "crash"}
        running.summaries = {"new": None}
        self.assertIn("1 of 3 programs ended, 2 run (crash, deploy), after ", running.tell())

    def test_only_test_programs_are_taken_from_what_cargo_says(self):
        def message(test, executable):
            return (
                f'{{"reason":"compiler-artifact","manifest_path":"/w/e2e/Cargo.toml","profile":{{"test":{test}}},'
                f'"target":{{"kind":["test"],"name":"deploy"}},"executable":{executable},"fresh":false}}'
            )

        output = "\n".join(["warning: a text", message("false", '"/x/emco-e2e"'), message("true", "null"), message("true", '"/x/d-1"')])
        self.assertEqual(artifacts(output), [("/w/e2e", "test", "deploy", "/x/d-1", False)])

    def test_a_command_that_takes_too_long_is_ended(self):
        self.assertNotEqual(run([sys.executable, "-c", "import time; time.sleep(60)"], 0), 0)

    def test_a_program_is_timed_for_the_next_run(self):
        with tempfile.TemporaryDirectory() as folder:
            cache.FOLDER = folder
            self.assertEqual(lanes.known_times(), {})
            lanes.remember_times({"deploy": 53.0, "crash": 62.0})
            lanes.remember_times({"deploy": 54.0})
            self.assertEqual(lanes.known_times(), {"deploy": 54.0, "crash": 62.0})
            order = lanes.Lanes([Program(n, [], on_control_planes=True) for n in ("deploy", "crash", "new")], 0)
            self.assertEqual([p.name for p in order.waiting[True]], ["new", "crash", "deploy"])

    def test_a_further_program_begins_once_processors_were_idle_since_the_last(self):
        clock = {"now": 100, "idle": 0, "total": 0}
        room = Room(15, 0.25, lambda: (clock["idle"], clock["total"]), lambda: clock["now"])

        def pass_seconds(seconds, idle):
            found = False
            for _ in range(seconds):
                clock["now"] += 1
                clock["total"] += 200
                clock["idle"] += int(200 * idle)
                found = room.is_there()
            return found

        room.take()
        self.assertFalse(pass_seconds(60, 0.1))
        self.assertFalse(pass_seconds(2, 1.0))
        self.assertTrue(pass_seconds(16, 0.3))
        room.take()
        self.assertFalse(pass_seconds(15, 0.3))
        self.assertTrue(pass_seconds(1, 0.3))

    def lanes_of(self, planes, computes):
        """Runs three programs on control planes and one that computes, scripts that share the folder "$0", all of which are to pass."""
        with tempfile.TemporaryDirectory() as folder:
            cache.FOLDER = folder
            names = [f"plane{number}" for number in range(lanes.LANES)]
            programs = [Program(name, ["sh", "-c", planes, folder, name], on_control_planes=True) for name in names]
            running = lanes.Lanes([*programs, Program("unit", ["sh", "-c", computes, folder])], time.monotonic() + 60, Always())
            running.run()
            self.assertEqual({(s.passed, s.failed) for s in running.summaries.values()}, {(1, 0)})
            self.assertEqual(sorted(lanes.known_times()), [*names, "unit"])

    def test_programs_on_control_planes_run_at_once(self):
        # Each waits until all of them run.
        there = f'[ $(ls "$0" | grep -c plane) = {lanes.LANES} ]'
        passes = f"printf '%s' '{result(1)}'"
        self.lanes_of(f'touch "$0/$1"; for n in $(seq 200); do {there} && exec {passes}; sleep 0.05; done; exit 1', passes)

    def test_what_computes_runs_before_control_planes(self):
        passes = f"printf '%s' '{result(1)}'"
        self.lanes_of(f'[ -e "$0/computed" ] && exec {passes}; exit 1', f'sleep 0.2; touch "$0/computed"; exec {passes}')

    def repeated(self, script, on_control_planes=True):
        """What is left of a program after it ran as `script` says, with a folder of its own for what it remembers."""
        with tempfile.TemporaryDirectory() as folder:
            lanes.UNSTEADY_DIR = os.path.join(folder, "unsteady")
            cache.FOLDER = folder
            with open(os.path.join(folder, "program"), "w", encoding="utf-8") as file:
                file.write("".join(failing("life::a_fact", "no answer")))
            passing = f"test life::a_fact ... ok <1s>\n{result(1)}"
            command = ["sh", "-c", script.format(passing=passing), os.path.join(folder, "program")]
            running = lanes.Lanes([Program("deploy", command, on_control_planes=on_control_planes)], time.monotonic() + 60)
            running.run()
            unsteady = lanes.repeat(running)
            kept = sorted(os.listdir(lanes.UNSTEADY_DIR)) if os.path.isdir(lanes.UNSTEADY_DIR) else []
            (said,) = running.summaries.values()
            return said, unsteady, kept

    # Fails the first time. The second time it is asked for one test by name.
    ONCE = 'if [ "$1" = --exact ]; then [ "$2" = life::a_fact ]; printf "%s" "{passing}"; else cat "$0"; exit 101; fi'

    def test_a_failure_on_control_planes_that_passes_alone_is_unsteady(self):
        said, unsteady, kept = self.repeated(self.ONCE)
        self.assertEqual((said.passed, said.failed, said.failures), (2, 0, []))
        self.assertEqual(unsteady, [("life::a_fact in deploy", "no answer")])
        self.assertEqual(kept, ["deploy-1.log", "deploy-2.log"])

    def test_a_failure_on_control_planes_that_stays_is_a_failure(self):
        said, unsteady, kept = self.repeated('cat "$0"; exit 101')
        self.assertEqual((said.failed, unsteady, len(kept)), (1, [], 2))

    def test_a_program_without_a_result_is_repeated_whole(self):
        script = 'if [ -e "$0.2" ]; then printf "%s" "{passing}"; else touch "$0.2"; exit 3; fi'
        said, unsteady, _ = self.repeated(script)
        self.assertEqual((said.passed, said.failed), (1, 0))
        self.assertIn("no result of deploy", unsteady[0][1])

    def test_what_needs_no_control_plane_is_never_repeated(self):
        said, unsteady, kept = self.repeated(self.ONCE, on_control_planes=False)
        self.assertEqual((said.failed, unsteady, kept), (1, [], []))

    def test_many_failures_are_never_repeated(self):
        more = "".join(f"echo 'test life::{n} ... FAILED';" for n in ("b", "c"))
        said, unsteady, kept = self.repeated(f'{more} cat "$0"; exit 101')
        self.assertEqual((said.failures, unsteady, kept), (["life::b", "life::c", "life::a_fact"], [], []))


class End(unittest.TestCase):
    def test_a_failure_is_named_with_its_own_words_in_the_last_lines(self):
        said = summary(*failing(), *[f"test t{n} ... ok <{n}s>\n" for n in range(40)])
        lines = list(report.lines([("docs", said)], {"docs": 150.0}, [("x in y", "late")]))
        self.assertEqual(lines[-1], "unsteady: x in y (first failure: late)")
        self.assertEqual(lines[-2], "failed: place::a_fact in docs: no water")
        self.assertEqual(lines[-3], "over budget: docs took 150 s, a program has 135 s")

    def test_many_failures_do_not_hide_that_there_are_more(self):
        lines = list(report.lines([("deploy", summary(*failing())) for _ in range(20)], {}, []))
        self.assertEqual(lines[-1], "failed: 8 more, named above")

    def test_programs_that_are_unchanged_are_named_and_not_counted(self):
        lines = list(report.lines([("deploy", summary(UNIT, result(3)))], {}, [], [("crds: laws", 4), ("engine: golden", 5)]))
        wanted = "2 programs unchanged since they passed (9 tests, not counted below): crds: laws, engine: golden"
        self.assertEqual(lines, [wanted])

    def test_slow_tests_and_programs_are_over_budget(self):
        said = summary("test a ... ok <69s>\n", "test b ... ok <44s>\n")
        lines = list(report.lines([("deploy", said)], {"deploy": 89.0}, []))
        self.assertEqual([line for line in lines if "over" in line], ["over budget: a in deploy took 69 s, a test has 68 s"])


class Guard(unittest.TestCase):
    def start(self, folder):
        """A guarded command that starts an orphan, which writes its number into a file."""
        file = os.path.join(folder, "pid")
        script = f"(setsid sleep 600 & echo $! >{file}.part; mv {file}.part {file}) & sleep 600"
        outer = "import subprocess, sys; subprocess.run(sys.argv[1:])"
        guard = [sys.executable, "-B", os.path.join(HERE, "guard.py"), "bash", "-c", script]
        process = subprocess.Popen([sys.executable, "-c", outer, *guard])
        self.until(lambda: os.path.exists(file), "nothing started")
        with open(file, encoding="ascii") as text:
            return process, int(text.read())

    def until(self, true, complaint):
        end = time.monotonic() + 30
        while not true():
            self.assertLess(time.monotonic(), end, complaint)
            time.sleep(0.02)

    def test_orphans_end_with_a_run_that_is_killed(self):
        for code in (signal.SIGKILL, signal.SIGTERM):
            with tempfile.TemporaryDirectory() as folder:
                process, orphan = self.start(folder)
                process.send_signal(code)
                process.wait()
                self.until(lambda: not os.path.exists(f"/proc/{orphan}"), "the orphan is still there")

    def test_a_guarded_command_keeps_its_code_and_leaves_nothing(self):
        guard = [sys.executable, "-B", os.path.join(HERE, "guard.py"), "bash", "-c"]
        answer = subprocess.run([*guard, "setsid sleep 600 >/dev/null & echo $!; exit 7"], stdout=subprocess.PIPE, text=True)
        self.assertEqual(answer.returncode, 7)
        self.assertFalse(os.path.exists(f"/proc/{answer.stdout.strip()}"))
        self.assertEqual(descendants(), [])


if __name__ == "__main__":
    unittest.main()

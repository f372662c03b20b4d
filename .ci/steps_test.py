"""What is told of a run: how far it is, how long its steps took, and what the pages say about that."""

import os
import re
import tempfile
import time
import unittest

import cache
import progress
import steps
from command import ROOT
from progress import Beat, Building, Linking

# Copied by hand from `target/times.json` of runs on two processors: `.ci/run` with warm caches, and the first `make test` on a fresh
# machine. `tests` are `units` and `planes` together.
MEASURED = cache.read_file(os.path.join(ROOT, ".ci", "times.json"))
# The last runs on this machine. Other tests have caches of their own.
LAST = cache.read(steps.KEPT)
# "About": as many times more or less as a page may be off.
ORDER = 3
# What the pages say, in minutes: of which kind of run, which step.
SAID = {
    "CONTRIBUTING.md": [
        (r"On two cores\s+it\s+takes\s+(\d+)\s+minutes:", "gate", "all"),
        (r"(\d+)\s+for\s+builds", "gate", "builds"),
        (r"(\d+)\s+for\s+tests", "gate", "tests"),
        (r"(\d+)\s+for\s+the\s+comparison\s+with\s+Helm", "gate", "conformance"),
        (r"first\s+run\s+on\s+a\s+machine\s+takes\s+about\s+(\d+)\s+minutes", "first", "all"),
    ],
    "README.md": [(r"first\s+`make\s+test`\s+takes\s+about\s+(\d+)\s+minutes\s+on\s+two\s+cores", "first", "all")],
}


class Pages(unittest.TestCase):
    def said(self):
        """Each number of the pages: where, kind of run, step, seconds."""
        for page, sentences in SAID.items():
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                text = file.read()
            for sentence, kind, step in sentences:
                found = re.findall(sentence, text)
                self.assertEqual(len(found), 1, f"{page} does not say once: {sentence}")
                yield f"{page}: {step} of a {kind} run", kind, step, float(found[0]) * 60

    def near(self, said, measured, where):
        # Pages say minutes: what takes less is one.
        measured = max(measured, 60.0)
        self.assertTrue(said / ORDER <= measured <= said * ORDER, f"{where}: the page says {said:.0f} s, measured are {measured:.0f} s")

    def test_the_pages_say_times_of_the_measured_order(self):
        for where, kind, step, seconds in self.said():
            self.near(seconds, MEASURED[kind][step], where)

    def test_the_pages_say_times_of_the_order_of_the_last_run_here(self):
        last = LAST.get("gate", {})
        # A machine with more processors is faster, and only a whole run can be compared.
        if os.cpu_count() == 2 and "all" in last:
            for where, kind, step, seconds in self.said():
                if (kind, step) == ("gate", "all"):
                    self.near(seconds, last["all"], where)


class Steps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        cache.FOLDER = folder.name
        self.addCleanup(setattr, steps, "TIMES", steps.TIMES)
        steps.TIMES = os.path.join(folder.name, "target", "times.json")

    def run_of(self, kind, **seconds):
        steps.begin(kind)
        steps.note(seconds)
        return steps.end(sum(seconds.values()))

    def test_the_table_has_the_last_run_of_its_kind_beside_it(self):
        self.run_of("gate", builds=600.0, planes=480.4, conformance=170.0)
        self.run_of("test", builds=60.0, planes=90.0)
        lines = self.run_of("gate", builds=500.0, planes=500.0, audit=9.0)
        self.assertEqual([line.split() for line in lines], [
            ["seconds", "this", "run", "last", "run"], ["builds", "500", "600"], ["planes", "500", "480"], ["audit", "9", "-"],
            ["conformance", "-", "170"], ["all", "1009", "1250"],
        ])

    def test_a_run_writes_its_times(self):
        self.run_of("gate", builds=600.0, planes=480.44)
        written = cache.read_file(steps.TIMES)
        self.assertEqual(written["seconds"], {"builds": 600.0, "planes": 480.4, "all": 1080.4})
        self.assertEqual((written["kind"], written["processors"]), ("gate", os.cpu_count()))

    def test_a_run_whose_builds_failed_is_not_the_last_one(self):
        self.run_of("gate", builds=600.0, planes=480.0)
        self.run_of("gate", audit=9.0)
        self.assertIn("600", self.run_of("gate", builds=1.0)[1])


class Progress(unittest.TestCase):
    def until(self, true):
        end = time.monotonic() + 30
        while not true():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_a_long_step_says_how_far_it_is(self):
        self.assertLessEqual(progress.EVERY, 30)
        said = []
        with Beat(lambda: said.append("looked"), every=0.01):
            self.until(lambda: len(said) > 2)

    def test_crates_are_counted_as_they_are_compiled(self):
        building = Building(lambda: 12.0)
        for line in "   Compiling kube v5.0.0\n", "    Checking emco-crds v0.1.0 (/w/crds)\n", "warning: Compiling\n":
            building.line(line)
        self.assertIn("building: 2 crates compiled", building.tell())

    def test_seconds_of_linkers_are_added_up(self):
        with Linking(count=lambda: 2, look=0.01) as linking:
            self.until(lambda: linking.seconds > 0.1)
        self.assertEqual(progress.linkers(), 0)


if __name__ == "__main__":
    unittest.main()

"""What happens to tests and programs that take too long."""

import glob
import os
import tempfile
import unittest

import budget
import cache
from command import ROOT
from programs import metadata
from test_output import Summary


def sources_of(program):
    """The files that a program's tests are in."""
    package, _, name = program.rpartition(": ")
    folder = os.path.join(ROOT, {"": "e2e", "helm": "controllers/helm"}[package], "tests")
    return glob.glob(f"{folder}/{name}.rs") + glob.glob(f"{folder}/{name}/**/*.rs", recursive=True)


def said(*times):
    made = Summary()
    made.passed, made.times = len(times), list(times)
    return made


class Budget(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        cache.FOLDER = folder.name

    def bind(self, test, program=80.0, name="docs", others=(), last=None):
        failed = budget.bind([(name, said(("a::b", test)))], {name: program, **dict(others)}, last or {})
        self.assertEqual(failed.failed, len(failed.complaints))
        return failed.complaints

    def test_the_second_run_over_budget_fails(self):
        self.assertEqual(self.bind(91.0), [])
        self.assertEqual(self.bind(88.0), ["over budget, as in the last run (91 s): a::b in docs took 88 s, a test has 68 s"])
        self.assertEqual(len(self.bind(88.0)), 1)

    def test_a_run_within_budget_forgets_the_one_before(self):
        for test in (91.0, 40.0, 91.0):
            self.assertEqual(self.bind(test), [])

    def test_a_program_is_bound_like_a_test(self):
        self.assertEqual(self.bind(1.0, 145.0), [])
        self.assertEqual(self.bind(1.0, 143.0), ["over budget, as in the last run (145 s): docs took 143 s, a program has 135 s"])

    def test_a_machine_that_is_slow_in_all_programs_fails_none(self):
        last = {"docs": 140.0, "cli": 100.0, "deploy": 200.0, "short": 1.0}
        others = {"cli": 120.0, "deploy": 240.0, "short": 50.0}
        self.assertEqual(self.bind(1.0, 140.0), [])
        self.assertEqual(self.bind(1.0, 161.0, others=others, last=last), [])
        self.assertEqual(len(self.bind(1.0, 170.0, others=others, last=last)), 1)
        # Faster than the last one, it gives nobody less.
        self.assertEqual(budget.slowness({"docs": 70.0}, last), 1.0)
        self.assertEqual(budget.slowness({}, last), 1.0)

    def test_a_run_without_the_program_changes_nothing(self):
        self.assertEqual(self.bind(91.0), [])
        self.assertEqual(self.bind(1.0, name="crds: laws"), [])
        self.assertEqual(len(self.bind(91.0)), 1)

    def test_a_large_program_has_a_budget_of_its_own(self):
        (name, (seconds, _)) = next(iter(budget.LARGE.items()))
        self.assertEqual(list(budget.over(name, said(), seconds - 1.0)), [])
        self.assertEqual([row[0] for row in budget.over(name, said(), seconds + 1.0)], [name])
        self.assertEqual(len(budget.too_large({name: 60.0, "docs": 1.0})), 1)
        self.assertEqual(budget.too_large({name: 70.0}), [])

    def test_a_large_test_has_a_budget_of_its_own(self):
        for program, tests in budget.LARGE_TESTS.items():
            for name, seconds in tests.items():
                self.assertGreater(seconds, budget.TEST_BUDGET)
                self.assertEqual(list(budget.over(program, said((name, seconds - 1.0)), 1.0)), [])
                found = list(budget.over(program, said((name, seconds + 1.0)), 1.0))
                self.assertEqual([row[2] for row in found], [f"{name} in {program} took {seconds + 1} s, this one has {seconds} s"])
                self.assertEqual(len(list(budget.over("elsewhere", said((name, seconds - 1.0)), 1.0))), 1)

    def test_large_tests_are_there(self):
        for program, tests in budget.LARGE_TESTS.items():
            sources = "".join(open(path, encoding="utf-8").read() for path in sources_of(program))
            for name in tests:
                self.assertIn(f"fn {name.rpartition('::')[2]}(", sources, f"{name} is gone from {program}: take it out of LARGE_TESTS")

    def test_large_programs_are_there_and_say_why(self):
        there = {"doc"}
        for package in metadata():
            short = package["name"].removeprefix("emco-")
            for target in package["targets"]:
                on_planes = package["name"] == "emco-e2e" and target["kind"] == ["test"]
                there.add(target["name"] if on_planes else f"{short}: {target['name']}")
            there.add(f"{short}: unit tests")
        for name, (seconds, why) in budget.LARGE.items():
            self.assertIn(name, there, "it is gone: take it out of LARGE")
            self.assertGreater(seconds, budget.PROGRAM_BUDGET)
            self.assertTrue(why)


if __name__ == "__main__":
    unittest.main()

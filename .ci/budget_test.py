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

    def bind(self, **percent):
        """Binds programs that cost this much of all, on a machine that is as slow as it likes."""
        self.slow = getattr(self, "slow", 10.0) * 1.7
        rest = {"rest": self.slow * (100.0 - sum(percent.values()))}
        failed = budget.bind({**{name: self.slow * share for name, share in percent.items()}, **rest})
        self.assertEqual(failed.failed, len(failed.complaints))
        return [complaint for complaint in failed.complaints if not complaint.startswith("rest ")]

    def test_the_second_run_that_costs_too_much_fails(self):
        self.assertEqual(self.bind(docs=9.0), [])
        wanted = "docs costs 8.0 % of the tests on control planes, in the last run 9.0 %; it has 7.0 %"
        self.assertEqual(self.bind(docs=8.0), [wanted])
        self.assertEqual(len(self.bind(docs=8.0)), 1)

    def test_a_run_that_costs_what_it_may_forgets_the_one_before(self):
        for share in (8.0, 6.9, 8.0):
            self.assertEqual(self.bind(docs=share), [])

    def test_a_run_of_nothing_on_control_planes_binds_nobody(self):
        self.assertEqual(budget.bind({}).failed, 0)
        self.assertEqual(budget.bind({"docs": 0.0}).failed, 0)

    def test_some_programs_may_cost_more(self):
        for name, share in budget.COSTS.items():
            self.assertGreater(share, budget.COST)
            for took, failures in ((share - 0.2, 0), (share + 0.2, 1)):
                self.assertEqual(self.bind(**{name: took}), [])
                self.assertEqual(len(self.bind(**{name: took})), failures)

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
        for name in budget.COSTS:
            self.assertIn(name, there, "it is gone: take it out of COSTS")
        for name, (seconds, why) in budget.LARGE.items():
            self.assertIn(name, there, "it is gone: take it out of LARGE")
            self.assertGreater(seconds, budget.PROGRAM_BUDGET)
            self.assertTrue(why)


if __name__ == "__main__":
    unittest.main()

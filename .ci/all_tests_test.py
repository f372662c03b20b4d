"""What is made of the output of `cargo test`."""

import sys
import unittest

from all_tests import Summary, programs_of_tests, run

UNIT = "     Running unittests src/lib.rs (target/debug/deps/emco_engine-0123)\n"
DOC = "   Doc-tests emco_helm\n"


def result(passed, failed=0, ignored=0):
    verdict = "FAILED" if failed else "ok"
    return f"test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out; finished in 0.1s\n"


def summary(*lines):
    made = Summary()
    for line in lines:
        made.line(line)
    made.end()
    return made


class Tests(unittest.TestCase):
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
        made.add(summary(UNIT, "test place::a_fact ... FAILED\n", result(1, failed=1)))
        self.assertEqual((made.passed, made.failed, len(made.complaints)), (4, 1, 1))

    def test_every_test_program_is_run_once(self):
        names = [name for name, _ in programs_of_tests([])]
        self.assertEqual(len(names), len(set(names)))
        self.assertLess({"unit", "doc", "deploy", "golden", "command_line"}, set(names))
        self.assertEqual(programs_of_tests(["operator"]), [(n, ["--test", n]) for n in ("command_line", "process")])

    def test_failed_tests_are_named(self):
        made = summary(UNIT, "test place::a_fact ... FAILED\n", result(0, failed=1))
        self.assertIn("place::a_fact", made.complaints[0])

    def test_a_command_that_takes_too_long_is_ended(self):
        self.assertNotEqual(run([sys.executable, "-c", "import time; time.sleep(60)"], 0), 0)


if __name__ == "__main__":
    unittest.main()

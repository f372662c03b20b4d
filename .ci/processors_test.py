"""How the processor time of programs is told."""

import os
import signal
import subprocess
import sys
import unittest

from processors import Processors, sessions

SPIN = "import os, time\nwhile time.process_time() < 0.3: pass\n"


class Of(unittest.TestCase):
    def test_what_a_program_starts_counts_for_its_session(self):
        # The child works and is waited for; its parent waits to be ended.
        script = (
            f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {SPIN!r}])\n"
            "print('done', flush=True); time.sleep(60)"
        )
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True) as process:
            try:
                process.stdout.readline()
                self.assertGreaterEqual(sessions()[process.pid], 0.3)
                self.assertNotIn(process.pid, {s for s in sessions() if s == os.getpid()})
            finally:
                os.killpg(process.pid, signal.SIGKILL)

    def test_the_most_that_was_seen_is_kept_and_repeats_are_added(self):
        looks = [{7: 1.0, 8: 5.0, 1: 99.0}, {7: 3.0}, {7: 2.0, 9: 0.5}]
        used = Processors(read=lambda: looks.pop(0))
        used.begins(7, "cli")
        used.begins(8, "deploy")
        used.begins(9, "cli")
        for _ in range(3):
            used.look()
        self.assertEqual(used.by_program(), {"cli": 3.5, "deploy": 5.0})

    def test_a_process_that_ends_meanwhile_is_no_error(self):
        self.assertTrue(sessions())
        self.assertEqual(sessions(os.path.dirname(os.path.abspath(__file__))), {})


if __name__ == "__main__":
    unittest.main()

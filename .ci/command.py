"""Runs a command, passes on what it prints, and takes it along when this process ends."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
# Output of lanes must not be mixed within a line.
PRINTING = threading.Lock()
# Names of the commands that run, for whoever says how far a run is.
RUNNING = []


def die_with_parent():
    """Asks the kernel to end this process with the thread that started it."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def say(text):
    """Prints a line at once."""
    with PRINTING:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


class Command:
    """A command that runs, and what it prints, line by line, passed on as it comes."""

    def __init__(self, command, deadline, on_line=None, prefix="", cwd=ROOT, env=None):
        say(f"\n--- {' '.join(command)}")
        self.name = " ".join(command)
        RUNNING.append(self.name)
        self.process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True, preexec_fn=die_with_parent,
        )
        self.on_line, self.prefix = on_line, prefix
        self.late = False
        self.timer = threading.Timer(max(1.0, deadline - time.monotonic()), self._too_long)
        self.timer.daemon = True
        self.timer.start()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        with self.process.stdout as lines:
            for line in lines:
                with PRINTING:
                    sys.stdout.write(self.prefix + line)
                    sys.stdout.flush()
                if self.on_line:
                    self.on_line(line)

    def _too_long(self):
        say(f"--- this takes too long, it is ended: {self.name}")
        self.late = True
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
            if self.name in RUNNING:
                RUNNING.remove(self.name)


def run(command, deadline, on_line=None):
    """Runs a command, passes on what it prints line by line, and answers its exit code."""
    return Command(command, deadline, on_line).wait()

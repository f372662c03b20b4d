#!/usr/bin/env python3
"""Runs a command, and ends everything that it started when it ends, or when this process's parent does.

The kernel hands orphans among its descendants to this process, so none gets away, whichever of them was killed. It leaves
nothing behind that a later run would meet.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None, use_errno=True)
# Seconds that programs have to clean up after the signal that asks for it.
GRACE = 5.0


def children(pid):
    """Processes that `pid` started, by any of its threads."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += [int(child) for child in file.read().split()]
    except OSError:
        pass
    return found


def descendants():
    """All processes below this one."""
    found, look = [], children(os.getpid())
    while look:
        pid = look.pop()
        found.append(pid)
        look += children(pid)
    return found


def reap():
    """Takes note of what has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_all():
    """Ends every descendant: asks first, then insists."""
    for code, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, GRACE)):
        until = time.monotonic() + seconds
        asked = set()
        while time.monotonic() < until:
            reap()
            left = descendants()
            if not left:
                return
            for pid in left:
                if pid not in asked or code == signal.SIGKILL:
                    asked.add(pid)
                    try:
                        os.kill(pid, code)
                    except ProcessLookupError:
                        pass
            time.sleep(0.05)


def main(command):
    parent = os.getppid()
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)

    def stop(code, _frame):
        signal.signal(code, signal.SIG_IGN)
        end_all()
        sys.exit(128 + code)

    for code in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(code, stop)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        return 1
    # Out of the group that a signal for the parent may be meant for: somebody has to be left to clean up.
    os.setpgid(0, 0)
    # Should this process be killed itself, the command goes with it.
    tied = lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # noqa: E731
    with subprocess.Popen(command, preexec_fn=tied, start_new_session=True) as process:
        code = process.wait()
    end_all()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

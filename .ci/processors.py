"""Adds up how long processors worked for each test program, the control planes that it starts included.

Seconds on the clock tell little of a program that runs beside others. Each program has a session of its own, and whatever it starts
belongs to that; what ended counts for the process that waited for it.
"""

import os
import threading

# Seconds between two looks: what nobody waited for is lost since the last one.
LOOK = 2.0
TICKS = os.sysconf("SC_CLK_TCK")


def sessions(root="/proc"):
    """Seconds of processor by session, of the processes that are there and of the children that they waited for."""
    found = {}
    for pid in os.listdir(root):
        if not pid.isdigit():
            continue
        try:
            with open(os.path.join(root, pid, "stat"), encoding="utf-8", errors="replace") as file:
                # The name before may hold anything.
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        session, ticks = int(fields[3]), sum(int(field) for field in fields[11:15])
        found[session] = found.get(session, 0.0) + ticks / TICKS
    return found


class Processors:
    """What was used by each program, while its block runs."""

    def __init__(self, read=sessions, look=LOOK):
        self.read, self.every = read, look
        self.names, self.seconds = {}, {}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def begins(self, session, name):
        self.names[session] = name

    def look(self):
        """Keeps the most that was seen of each session: what ends without being waited for is missing afterwards."""
        for session, seconds in self.read().items():
            if session in self.names:
                self.seconds[session] = max(self.seconds.get(session, 0.0), seconds)

    def by_program(self):
        """Seconds by name; a program that was repeated has those of all its sessions."""
        found = {}
        for session, name in self.names.items():
            found[name] = found.get(name, 0.0) + self.seconds.get(session, 0.0)
        return found

    def _watch(self):
        while not self.over.wait(self.every):
            self.look()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.look()

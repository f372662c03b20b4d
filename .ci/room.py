"""Tells whether the processors have room for one program more."""

import time

# One more begins only where this part of the processors was idle for so many seconds after the last one began. On a machine on which one
# program fills both processors, each of three at once took three times as long, and what has a limit of time failed.
IDLE = 0.25
SECONDS = 6


def read_processors():
    """How long all processors were idle so far, and how long in all, in ticks. Where that is not told, there is always room."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)
    except (OSError, ValueError, IndexError):
        now = time.monotonic()
        return now, now


class Room:
    """Whether the processors have room for one program more, by how idle they were since the last one began."""

    def __init__(self, seconds=SECONDS, idle=IDLE, read=read_processors, now=time.monotonic):
        self.seconds, self.idle, self.read, self.now = seconds, idle, read, now
        self.seen = []

    def take(self):
        self.seen = []

    def is_there(self):
        at = self.now()
        self.seen = [look for look in self.seen if look[0] > at - 2 * self.seconds] + [(at, *self.read())]
        before = [look for look in self.seen if look[0] <= at - self.seconds]
        if not before:
            return False
        (_, idle, total), (_, idle_now, total_now) = before[-1], self.seen[-1]
        return total_now > total and (idle_now - idle) / (total_now - total) >= self.idle

"""Types lines, each with Tab, in a shell on a terminal of its own, and prints what the shell runs after Enter, a line for each.

Arguments: the lines as a list of JSON, and the command of the shell. Its prompt is `READY> `; `show` prints its arguments between << and >>.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

typed, shell = json.loads(sys.argv[1]), sys.argv[2:]
DEADLINE = time.monotonic() + 120
# Read, and not yet asked for.
rest = b""


def until(terminal, mark):
    """Reads until a mark was printed; what was read up to it."""
    global rest
    seen = rest
    while mark not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0.0, DEADLINE - time.monotonic()))
        try:
            chunk = os.read(terminal, 65536) if ready else b""
        except OSError:
            chunk = b""
        if not chunk:
            sys.exit(f"{shell[0]} did not print {mark!r}, but {seen!r}")
        seen += chunk
    seen, _, rest = seen.partition(mark)
    return seen


process, terminal = pty.fork()
if process == 0:
    os.execvp(shell[0], shell)
# Wide, so that no line is broken.
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 500, 0, 0))
for line in typed:
    until(terminal, b"READY> ")
    # Ctrl-A is the beginning of the line.
    os.write(terminal, line.encode() + b"\t\x01show \r")
    print(until(terminal, b">>").split(b"<<")[-1].decode().strip())
os.kill(process, signal.SIGKILL)

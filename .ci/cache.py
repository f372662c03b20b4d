"""Keeps small JSON files between runs, in the cache of this machine."""

import json
import os
import threading

FOLDER = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "emco")
WRITING = threading.Lock()


def read_file(path):
    """What a JSON file holds. Empty when there is none, or none that can be used."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_file(path, content):
    """Replaces a JSON file. One that is cut off would be of no use, and is never there."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.{os.getpid()}"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")
    os.replace(part, path)


def read(name):
    """What the last run left under this name."""
    return read_file(os.path.join(FOLDER, name))


def change(name, made):
    """Replaces what is kept under this name by what `made` answers for it."""
    with WRITING:
        write_file(os.path.join(FOLDER, name), made(read(name)))

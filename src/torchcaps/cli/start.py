"""The start of the command: Ctrl-C ends it in one line, also while modules are being imported."""

from __future__ import annotations

import os
import signal
import sys
from io import TextIOWrapper
from shlex import join
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143
_GROUPS = {"lung", "pose", "uav"}  # groups of commands: the command is the second word
_GO_ON = {"rem", "prune", "reproduce", "prepare", "compile-map"}  # commands that go on when called again


def run() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # names of files may be in no encoding, and a terminal may not have every sign
            has_all = stream.encoding.lower() in ("utf-8", "utf8")
            stream.reconfigure(errors="surrogateescape" if has_all else "replace")
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a background job ignores it
        signal.signal(signal.SIGINT, _on_interrupt)
    from .main import run as run_command

    run_command()


def say_how_to_go_on(ended: str = "interrupted") -> None:
    """What a command tells its user that was ended before it was done."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    called = next((word for word in words if word not in _GROUPS), "")
    advice = ""
    if called == "train":
        given = [word for word in sys.argv[1:] if word != "--resume"]
        again = join(["torchcaps", *given, "--resume"])
        advice = f"; go on after the last saved epoch: {again}"
    elif called in _GO_ON:
        advice = "; the same command goes on where it stopped"
    print(f"torchcaps: {ended}{advice}", file=sys.stderr, flush=True)


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    if not _is_importing(frame):
        signal.default_int_handler(number, frame)
    # an exception would pass through half-imported extension modules, which turn it into others or print it
    say_how_to_go_on()
    os._exit(INTERRUPTED)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False

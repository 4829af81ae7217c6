"""Code of others: not recorded. `probe` asks the interpreter where the program is, and when."""

import sys
import threading
import time

SEEN = []


def probe():
    chain = []
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.endswith("edge_program.py") or (file.startswith("<") and not file.startswith("<frozen")):
            chain.append((frame.f_code.co_qualname, frame.f_lineno))
        frame = frame.f_back
    SEEN.append((time.time_ns(), threading.get_native_id(), chain))


def call(function):
    return function()


def make_generator():
    for number in range(2):
        probe()
        yield number


class with_callback:
    def run_callback(self):
        probe()
        return self.callback()

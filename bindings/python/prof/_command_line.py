"""The words that this process was started with: the interpreter, its options, and what it runs."""

from __future__ import annotations

import os
import sys
from typing import List


def read() -> List[str]:
    """OSError."""
    words = getattr(sys, "orig_argv", None)  # from 3.10 on
    if words:
        return list(words)
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]

"""RAF's names: raf.utils.profiler and raf.utils.memory_profiler. They are prof.profiler and
prof.memory_profiler, by every form of import, so that a script of RAF's changes one word."""

from __future__ import annotations

import sys
from typing import List

from . import memory_profiler, profiler

__all__ = ["memory_profiler", "profiler"]

for _name in __all__:  # for "import prof.utils.profiler", which Python looks for here
    sys.modules[f"{__name__}.{_name}"] = globals()[_name]


def __dir__() -> List[str]:
    return list(__all__)

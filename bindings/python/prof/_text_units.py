"""Times and bytes as torch.profiler writes them."""

from __future__ import annotations

from typing import Optional

MS, S = 1e3, 1e6


def format_time(us: float, unit: Optional[str] = None) -> str:
    """By magnitude, or in one unit: "12.345us", "1.234ms", "1.234s"."""
    if unit not in (None, "us", "ms", "s"):
        raise ValueError(f"time_unit must be 's', 'ms', 'us' or None, not {unit!r}")
    if unit == "s" or (unit is None and us >= S):
        return f"{us / S:.3f}s"
    if unit == "ms" or (unit is None and us >= MS):
        return f"{us / MS:.3f}ms"
    return f"{us:.3f}us"


def format_memory(count: int) -> str:
    """ "1.50 MB" of 2^20 bytes, as torch.profiler has it."""
    for power, word in ((30, "GB"), (20, "MB"), (10, "KB")):
        if abs(count) >= 1 << power:
            return f"{count / (1 << power):.2f} {word}"
    return f"{count} B"

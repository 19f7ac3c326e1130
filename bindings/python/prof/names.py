"""Who recorded: names of threads and of the process, and the rank, as traces and tables show
them."""

from __future__ import annotations

from typing import List, Optional

from ._library import C, encoded, short

is_rank_said = False
"""Has the program called set_rank()? Then no other source sets the rank."""


def set_thread_name(name: Optional[str] = None) -> None:
    """Of the calling thread; None: as threading calls it. Cut at 63 bytes; the last one wins.
    TypeError, ValueError."""
    if name is None:
        import threading

        name = threading.current_thread().name
    C.check(C.prof_thread_set_name(encoded(name, "name")))


def set_process_name(name: str) -> None:
    """Of this process. Cut at 63 bytes; the last one wins. TypeError, ValueError."""
    C.check(C.prof_process_set_name(encoded(name, "name")))


def set_rank(rank: int, world_size: int) -> None:
    """Of this process among many; by default from RANK and WORLD_SIZE, or what SLURM, Open MPI and
    PMI say, and under prof.torch.observe() what torch.distributed says. ValueError unless 0 <= rank
    < world_size."""
    for what, value in (("rank", rank), ("world_size", world_size)):
        if not isinstance(value, int):
            raise TypeError(f"{what} must be an int, not {short(value)}")
        if not 0 <= value < 1 << 31:
            raise ValueError(f"{what} must be from 0 to 2147483647, not {short(value)}")
    if rank >= world_size:
        raise ValueError(
            f"rank must be less than world_size, which is {world_size}, not {short(rank)}"
        )
    global is_rank_said
    C.check(C.prof_rank_set(rank, world_size))
    is_rank_said = True


__all__ = ["set_process_name", "set_rank", "set_thread_name"]


def __dir__() -> List[str]:
    return list(__all__)

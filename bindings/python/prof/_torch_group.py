"""torch.distributed's process group, where the program has joined one: the rank of this process,
also where no launcher has set RANK (torch.multiprocessing.spawn), and what torch.profiler writes of
the group, distributedInfo. Asks torch's Python alone: nothing here talks to the other ranks."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Dict

from . import names
from ._library import C

_known: Dict[str, Any] = {}
"""As torch.profiler has it, but for rank and world_size, which the capture knows. The last group's,
also when the program has left it."""


def ask(torch: Any) -> None:
    """What there is to know now."""
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    _tell(distributed.get_rank(), distributed.get_world_size())
    _known.clear()
    with contextlib.suppress(Exception):  # what an older torch lacks
        _known["backend"] = str(distributed.get_backend())
        _known["pg_count"] = distributed.get_pg_count()
        _known["pg_config"] = distributed.distributed_c10d._get_all_pg_configs()
        if _known["backend"] == "nccl":
            _known["nccl_version"] = ".".join(str(part) for part in torch.cuda.nccl.version())


def _tell(rank: int, world_size: int) -> None:
    if not names.is_rank_said:
        C.check(C.prof_rank_set(rank, world_size))


def info(rank: int, world_size: int) -> Dict[str, Any]:
    """distributedInfo of a capture; {}: there is no group, so it has what every capture has."""
    if not _known:
        return {}
    return {"backend": "", "rank": max(rank, 0), "world_size": max(world_size, 1), **_known}


def watch() -> None:
    """Tells the rank as soon as the program joins a group: a process that multiprocessing ends runs
    nothing of ours at its end. torch has no hook there; each of its ways to a default group comes
    through this function of its own. Where a torch has none of that name the rank is a launcher's,
    or unknown, as without."""
    module: Any = sys.modules.get("torch.distributed.distributed_c10d")
    update = getattr(module, "_update_default_pg", None)
    if update is None or getattr(update, "_is_watched", False):
        return

    def update_and_tell(*args: Any, **words: Any) -> Any:
        done = update(*args, **words)
        with contextlib.suppress(Exception):  # it is none of this process's, say
            group = module.GroupMember.WORLD
            if group is not None and group != module.GroupMember.NON_GROUP_MEMBER:
                _tell(group.rank(), group.size())
        return done

    update_and_tell._is_watched = True  # type: ignore[attr-defined]
    module._update_default_pg = update_and_tell


__all__ = ["ask", "info", "watch"]

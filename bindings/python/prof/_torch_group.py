"""torch.distributed's process group, if the program has joined one.

It says the rank of this process, even if no launcher has set RANK (torch.multiprocessing.spawn). It
also says what torch.profiler writes of the group, distributedInfo. Only torch's Python is queried:
nothing here talks to the other ranks."""

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
    """Reads what torch knows of the group now."""
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
    """Reports the rank as soon as the program joins a group. At the end it may be too late: a
    process that multiprocessing ends does not run prof's code.

    torch has no hook for it, but it calls _update_default_pg() each time that a default group is
    set. If a torch has no function of that name, the rank is a launcher's or unknown."""
    module: Any = sys.modules.get("torch.distributed.distributed_c10d")
    update = getattr(module, "_update_default_pg", None)
    if update is None or getattr(update, "_is_watched", False):
        return

    def update_and_tell(*args: Any, **words: Any) -> Any:
        done = update(*args, **words)
        with contextlib.suppress(Exception):  # for example, this process is not in the group
            group = module.GroupMember.WORLD
            if group is not None and group != module.GroupMember.NON_GROUP_MEMBER:
                _tell(group.rank(), group.size())
        return done

    update_and_tell._is_watched = True  # type: ignore[attr-defined]
    module._update_default_pg = update_and_tell


__all__ = ["ask", "info", "watch"]

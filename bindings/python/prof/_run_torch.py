"""``python -m prof run --torch``: PyTorch's operators in a program that does not know of prof.

The program imports torch, at any time and by any loader. Directly afterwards prof.torch begins to
observe, all threads if this torch can, until the process ends. If torch is not imported, nothing is
done. If something fails here, a line on stderr says so, and the program runs."""

from __future__ import annotations

import contextlib
import sys
import threading
from importlib.machinery import ModuleSpec
from typing import Any, Callable, Dict, Optional, Sequence

from ._own_calls import calls_program

NAME = "torch"


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            print(f"prof: {text}", file=sys.stderr)


class _Finder:
    """The first of sys.meta_path: it asks the others for torch, and has their loader tell when
    torch is there. The module, its loader and its spec are theirs."""

    def __init__(self, asked: Dict[str, bool]) -> None:
        self.asked = asked
        self._own = threading.local()

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Any = None
    ) -> Optional[ModuleSpec]:
        # a finder of the program's that asks all others, too, asks back
        if name != NAME or getattr(self._own, "is_asking", False):
            return None
        self._own.is_asking = True
        try:
            return self._find(name, path, target)
        finally:
            self._own.is_asking = False

    def _find(self, name: str, path: Optional[Sequence[str]], target: Any) -> Optional[ModuleSpec]:
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: Optional[ModuleSpec] = find(name, path, target) if find is not None else None
            if spec is not None:
                self._wrap(spec.loader)
                return spec
        return None  # ImportError, as without

    def _wrap(self, loader: Any) -> None:
        load = getattr(loader, "exec_module", None)
        if load is None:  # of a folder without __init__.py, say, which is not torch
            return

        @calls_program
        def exec_module(module: Any) -> None:
            with contextlib.suppress(AttributeError):
                del loader.exec_module
            _load(load, module)
            with contextlib.suppress(ValueError):  # another thread
                sys.meta_path.remove(self)
            _begin_behind(module, self.asked)

        # a loader that takes no attributes: torch is imported, and not seen
        with contextlib.suppress(AttributeError, TypeError):
            loader.exec_module = exec_module


@calls_program
def _load(load: Callable[[Any], None], module: Any) -> None:
    """Calls torch's loader. Meanwhile torch can find prof's collector, in case ITT is needed."""
    with contextlib.ExitStack() as stack:
        try:
            from . import _torch_found

            stack.enter_context(_torch_found.telling_torch(_torch_found.collector()))
        except Exception:  # no collector, or another one: begin() says why, where it matters
            pass
        load(module)


def _begin_behind(module: Any, asked: Dict[str, bool]) -> None:
    spec: Any = getattr(module, "__spec__", None)
    with contextlib.suppress(AttributeError):
        # it is whole: else the thread on which its callbacks are proven would wait for this one,
        # which imports it
        spec._initializing = False
    ours = sys.modules.get("prof.torch")
    if ours is not None and not hasattr(ours, "_torch"):  # it is what imports torch
        from . import _torch_found

        _torch_found.waiting.append(lambda: begin(asked))
    else:
        begin(asked)


def begin(asked: Dict[str, bool]) -> None:
    """torch is there. Says what cannot be had, once a process."""
    try:
        from . import _torch_group
        from .torch import NoCallbacksError, ObserveRun, install, observe

        asked = dict(asked)
        if asked.pop("replace_torch_profiler", False):
            install()
        _torch_group.watch()
        asked["profile_memory"] = bool(asked.get("profile_memory")) and _has_memory()
        try:
            ObserveRun(**asked).start()
        except NoCallbacksError as e:
            of_thread = observe(**asked)
            of_thread.start()
            _say(
                f"of torch's operators those of the thread that has imported it are seen, by "
                f"{of_thread.way}: {e.reason}"
            )
    except Exception as e:
        _say(f"torch's operators are not seen: {_bare(e)}")


def _has_memory() -> bool:
    """Can torch's memory be recorded? A line says why not."""
    from .torch import _memory

    try:
        _memory()
    except RuntimeError as e:
        _say(_bare(e))
        return False
    return True


def _bare(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return text[len("prof: ") :] if text.startswith("prof: ") else text


_is_watching = False


def watch(asked: Dict[str, bool]) -> None:
    """Observes torch from its import on, at once if it is imported already. A second time does
    nothing."""
    global _is_watching
    if _is_watching:
        return
    _is_watching = True
    if NAME in sys.modules:
        begin(asked)
    else:
        sys.meta_path.insert(0, _Finder(asked))

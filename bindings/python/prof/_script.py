"""Runs a script, a module, a folder, an archive, or the text on stdin, as python would.

It runs in a __main__ that stays until the process ends. Functions for atexit, threads, pickles and
spawned processes look for it."""

from __future__ import annotations

import builtins
import os
import sys
import traceback
from types import CodeType, ModuleType, TracebackType
from typing import Any, List, Optional

from ._own_calls import calls_program

STDIN = "-"
_HIDDEN = (__name__, "prof._run_script", "runpy")


class NotFoundError(SystemExit):
    """There is no such module, or nothing to run in it: said as python says it."""


def _is_container(script: str) -> bool:
    """A folder, or an archive of any name."""
    from pkgutil import get_importer

    return script != STDIN and get_importer(script) is not None


def _absolute(script: str) -> str:
    """As python has it since 3.9: nothing but the current folder before it."""
    try:
        return os.path.join(os.getcwd(), script)
    except OSError:  # the folder is gone
        return script


def title(script: str) -> str:
    """The name of its scope and of its captures. "." is called after the folder."""
    if script == STDIN:
        return "stdin"
    name = os.path.basename(script.rstrip("/"))
    return os.path.basename(os.path.realpath(script)) if name in ("", ".", "..") else name


def place(script: str, is_module: bool) -> None:
    """What python puts first into sys.path for it, in place of what it has put for
    ``-m prof._run``."""
    is_safe = getattr(sys.flags, "safe_path", sys.flags.isolated)  # from 3.11 on
    if not is_module and _is_container(script):
        sys.path[0 : 0 if is_safe else 1] = [os.path.abspath(script)]
    elif not is_safe:
        sys.path[0:1] = [
            os.getcwd()
            if is_module
            else ""
            if script == STDIN
            else os.path.dirname(os.path.realpath(script))
        ]


@calls_program
def execute(script: str, args: List[str], is_module: bool) -> None:
    """SystemExit and the script's other exceptions come through."""
    sys.argv = ["-m" if is_module else script, *args]
    if is_module or _is_container(script):
        _execute_found(script, is_module)
    elif script == STDIN:
        from importlib.machinery import BuiltinImporter

        source = sys.stdin.buffer.read() if sys.stdin is not None else b""
        _in_main(compile(source, "<stdin>", "exec", dont_inherit=True), __loader__=BuiltinImporter)
    else:
        from importlib.machinery import SourceFileLoader, SourcelessFileLoader

        path = _absolute(script)
        loader: Any = (
            SourcelessFileLoader("__main__", path)
            if path.endswith(".pyc")
            else SourceFileLoader("__main__", path)
        )
        code = (
            loader.get_code("__main__")
            if path.endswith(".pyc")
            else loader.source_to_code(loader.get_data(path), path)
        )
        _in_main(code, __file__=path, __cached__=None, __loader__=loader)


@calls_program
def _execute_found(script: str, is_module: bool) -> None:
    """runpy finds it, as it does for pdb. It would run it in a module that it takes away again."""
    import runpy

    class MissingError(Exception):
        pass

    found: Any = runpy
    try:
        _, spec, code = (
            found._get_module_details(script, MissingError)
            if is_module
            else found._get_main_module_details(MissingError)
        )
    except MissingError as e:
        raise NotFoundError(f"{sys.executable}: {e}") from None
    if is_module:
        sys.argv[0] = spec.origin
    _in_main(
        code,
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=spec.loader,
        __package__=spec.parent,
        __spec__=spec,
    )


@calls_program
def _in_main(code: CodeType, **names: Any) -> None:
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, "__package__": None, **names})
    if sys.version_info < (3, 14):
        main.__dict__["__annotations__"] = {}
    exec(code, main.__dict__)


# ---- what it raises ----


def _own(error: BaseException) -> Optional[TracebackType]:
    """Its traceback without the frames that run the script."""
    found = error.__traceback__
    while found is not None and (
        found.tb_frame.f_globals.get("__name__") in _HIDDEN
        or "importlib" in found.tb_frame.f_code.co_filename
    ):
        found = found.tb_next
    return found


def show(error: BaseException) -> None:
    """As python would, with sys.excepthook."""
    own = _own(error)
    try:
        sys.excepthook(type(error), error.with_traceback(own), own)
    except SystemExit:
        raise
    except BaseException as second:
        if second.__context__ is error:  # it comes of this handler only
            second.__context__ = None
        if sys.stderr is not None:
            try:
                print("Error in sys.excepthook:", file=sys.stderr)
                traceback.print_exception(type(second), second, _own(second))
                print("\nOriginal exception was:", file=sys.stderr)
                traceback.print_exception(type(error), error, own)
            except (OSError, ValueError):  # stderr is closed
                pass


def show_once(error: BaseException) -> None:
    """Shows it now; when it leaves this process's last frame, python shows it no more."""
    show(error)
    hook = sys.excepthook
    sys.excepthook = lambda kind, value, found: None if value is error else hook(kind, value, found)

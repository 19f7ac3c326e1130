"""What stands under a path is never half a file."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Iterator, Optional, Union

from ._library import encoded


def write_whole(path: Union[str, "os.PathLike[str]"], text: str) -> None:
    """Under another name first: the final one never holds half a file. As C's dumps
    (docs/reference/export-formats.md), a symbolic link to a file is replaced, not followed.
    /dev/null, /dev/stdout and FIFOs are written to directly. Other devices and folders are refused,
    so that none becomes a plain file. OSError and its kin."""
    encoded(path, "path")  # refuses anything but a path, with its value
    final, raw = os.fsdecode(path), text.encode("utf-8", "replace")
    straight = _open_straight(final)
    if straight is not None:
        with open(straight, "wb") as f:
            f.write(raw)
        return
    with replaced(final) as name, open(name, "wb") as f:
        f.write(raw)


def refuse_system_folder(path: str) -> None:
    """Raises OSError for a path in /dev or /proc, because replacing a link such as /dev/stdout
    would break the machine. Folders below /dev, such as /dev/shm, are allowed."""
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    if folder == "/dev" or folder == "/proc" or folder.startswith("/proc/"):
        raise OSError(errno.EINVAL, f"no file is put into {folder}; name another one", path)


@contextlib.contextmanager
def replaced(final: str) -> Iterator[str]:
    """Yields the name of a new, empty file in the same folder. At the end the file gets its final
    name. After an error it is removed."""
    name = f"{final}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    refuse_system_folder(final)
    try:
        open(name, "xb").close()
    except OSError as e:
        e.filename = final
        raise
    try:
        mode = _mode_of(final, name)
        os.chmod(name, 0o600)  # until it is whole
        yield name
        os.chmod(name, mode)
        os.replace(name, final)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mode_of(final: str, name: str) -> int:
    """As C's dumps: a new file gets the mode of the file that it replaces. Another user's file can
    only take rights away."""
    new = os.stat(name)
    try:
        old = os.lstat(final)
    except OSError:
        return stat.S_IMODE(new.st_mode)
    if not stat.S_ISREG(old.st_mode):
        return stat.S_IMODE(new.st_mode)
    allowed = 0o777 if old.st_uid == new.st_uid else stat.S_IMODE(new.st_mode)
    return old.st_mode & allowed


def _open_straight(path: str) -> Optional[int]:
    """A descriptor of the path, if it exists and is no regular file. None: a file can be put
    there."""
    # the descriptor itself: of a file, opened anew, the beginning would be written over
    if path == "/dev/stdout":
        return os.dup(1)
    try:
        about = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(about.st_mode):
        return None
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    is_null = stat.S_ISCHR(about.st_mode) and about.st_rdev == os.makedev(1, 3)
    if not is_null and not stat.S_ISFIFO(about.st_mode):
        raise OSError(errno.EINVAL, "neither a file nor a FIFO, nor /dev/null", path)
    try:
        opened = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as e:
        if e.errno == errno.ENXIO:  # to wait for a reader would stop the program
            raise OSError(errno.ENXIO, "nobody reads from it", path) from None
        raise
    os.set_blocking(opened, True)
    return opened

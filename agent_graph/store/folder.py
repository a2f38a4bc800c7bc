"""The data folder as the operating system sees it: made private and checked; may not look into the database."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any, Final

from agent_graph.errors import StoreUnusable
from agent_graph.system.files import PRIVATE_FILE, PRIVATE_FOLDER, make_private
from agent_graph.system.modules import optional

DATABASE_NAME: Final = "agent-graph.db"
"""The database's name in a data folder."""

_ELSEWHERE: Final = "Choose another data folder, or give this one to the user who runs the program."
_MOUNTS: Final = Path("/proc/self/mountinfo")
_NETWORK: Final = frozenset({
    "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "smb2", "smb3",
    "smbfs", "fuse.ceph", "fuse.curlftpfs", "fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs",
    "fuse.sshfs",
})  # fmt: skip
"""File systems that several machines may write to at once: the lock and the shared memory of the database hold on one
machine only."""
_PROBE_BYTES: Final = 256 * 1024
_resource = optional("resource")


def prepare_folder(folder: Path) -> None:
    """Make the data folder, readable by its owner alone, or check that the one there can be used.

    Raises `StoreUnusable`, also on a network file system; a folder that was there keeps its mode.
    """
    _check_local(folder)
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True)
        folder.chmod(PRIVATE_FOLDER)  # mkdir's mode is cut by the umask
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreUnusable(
            f"The data folder {folder} cannot be made: {error.strerror}. {_ELSEWHERE}", path=str(folder)
        ) from error
    _check_usable(folder)


def check_folder(folder: Path) -> None:
    """Raises `StoreUnusable` where `prepare_folder` would, and makes nothing."""
    _check_local(folder)
    _check_usable(folder)


def _check_local(folder: Path) -> None:
    mounts = _mounts()
    if not any(f" - {kind} " in mounts for kind in _NETWORK):
        return  # which is quickly seen, and nearly always so
    kind = _type_at(folder, mounts)
    if kind in _NETWORK:
        raise StoreUnusable(
            f"The data folder {folder} is on a network file system ({kind}), where no lock keeps a second machine out "
            "and a database can be damaged. Choose a folder on a local disk.",
            path=str(folder),
            reason="network",
        )


def _check_usable(folder: Path) -> None:
    if not folder.is_dir():
        raise StoreUnusable(f"The data folder {folder} is not a folder. Choose another.", path=str(folder))
    if _is_read_only(folder):
        raise StoreUnusable(
            f"The data folder {folder} is on a file system that is mounted read-only. Choose another data folder.",
            path=str(folder),
            reason="read-only",
        )
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise StoreUnusable(
            f"The data folder {folder} cannot be written to by this user. {_ELSEWHERE}",
            path=str(folder),
            reason="rights",
        )


def _is_read_only(folder: Path) -> bool:
    """Mounted so, where the system tells it; else the first write does."""
    look: Any = getattr(os, "statvfs", None)
    return look is not None and bool(look(folder).f_flag & getattr(os, "ST_RDONLY", 0))


def file_system(folder: Path) -> str:
    """The type of the file system that `folder` is or would be on (``ext4``, ``nfs4``), "" where the system does not
    tell."""
    return _type_at(folder, _mounts())


def _mounts() -> str:
    """What is mounted, as the system tells it; "" where it does not."""
    try:
        return _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _type_at(folder: Path, mounts: str) -> str:
    where = folder.absolute().resolve()
    above = {str(where), *map(str, where.parents)}
    found, longest = "", 0
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = before.split(" ")[4]
        if "\\" in point:
            point = point.encode().decode("unicode_escape")  # a space is written as \\040
        if point in above and len(point) >= longest:
            found, longest = after.split(" ")[0], len(point)
    return found


def free_bytes(folder: Path) -> int:
    """What this user may still write to the file system of `folder`."""
    return shutil.disk_usage(folder).free


def is_full(path: Path) -> bool:
    """Whether a write to `path` that failed can have failed for want of room: the disk, a quota, or the limit on the
    size of one file."""
    limit = _longest_file()
    if limit is not None:
        for name in (path.name, f"{path.name}-wal"):
            with contextlib.suppress(OSError):
                if path.with_name(name).stat().st_size + _PROBE_BYTES > limit:
                    return True
    try:
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
    except OSError:
        return True
    return False


def _longest_file() -> int | None:
    """Bytes that this process may write to one file; None for any number."""
    if _resource is None:
        return None
    limit, _ = _resource.getrlimit(_resource.RLIMIT_FSIZE)
    return None if limit == _resource.RLIM_INFINITY else int(limit)


def place_file(path: Path) -> None:
    """See to it that `path` is an ordinary file: made empty and private where there is none, else left alone.

    Raises `StoreUnusable`, also for a symbolic link: whoever can plant one would choose which file we write to.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        _make_file(path)
        return
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be read: {error.strerror}. {_ELSEWHERE}", path=str(path)) from error
    if stat.S_ISLNK(mode):
        raise StoreUnusable(
            f"{path} is a symbolic link, and those are not followed. Name the real folder instead.", path=str(path)
        )
    if not stat.S_ISREG(mode):
        raise StoreUnusable(f"{path} is not an ordinary file. Choose another data folder.", path=str(path))
    if not os.access(path, os.R_OK | os.W_OK):
        raise StoreUnusable(f"{path} cannot be written to by this user. {_ELSEWHERE}", path=str(path))


def _make_file(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    except FileExistsError:  # another process was faster
        return
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be made: {error.strerror}. {_ELSEWHERE}", path=str(path)) from error
    try:
        make_private(descriptor)  # open's mode is cut by the umask
    finally:
        os.close(descriptor)

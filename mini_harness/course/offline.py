"""The room in which a lesson's kernel runs when nobody watches: offline, the same on every machine.

The builder and `pytest --nbval` both start their kernels in a `Sandbox`, so that what was stored
and what it is compared with came about in the same way. A kernel imports this module before the
lesson's first cell: standard library only.
"""

import ipaddress
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

CELL_SECONDS = 60
"""The longest that one cell may run."""

KEPT = {
    # what an interpreter and its libraries are found by
    "PATH", "HOME", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONUSERBASE", "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX", "XDG_CACHE_HOME", "TMPDIR", "TEMP", "TMP",
    # and on Windows
    "SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
}  # fmt: skip
KEPT_PREFIXES = ("LD_", "DYLD_", "OPENBLAS_")

SAME_EVERYWHERE = {
    "MINI_HARNESS_MODE": "offline",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "COLUMNS": "80",
    "LINES": "24",
    "USER": "learner",
    "LOGNAME": "learner",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}

STARTUP = """\
from mini_harness.course import offline
offline.enter({work!r})
del offline
"""


class NetworkRefused(RuntimeError):
    """A lesson tried to leave this machine.

    Not an OSError: clients retry those, or take them for a server that is down for a moment.
    """

    def __init__(self, host: object) -> None:
        super().__init__(
            f"no network here: something tried to reach {host!r}. Lessons run offline, and only "
            "this machine's own address (127.0.0.1, localhost) can be reached. Use the scripted "
            "model, or a server that the lesson itself starts."
        )
        self.host = host


class Sandbox:
    """One kernel's own folder: its IPython profile, and an empty working folder.

    IPython runs the profile's startup file first, whoever started the kernel: so the guard also
    holds where the kernel is started by somebody else's code (nbval's).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self._profiles = folder / "ipython"
        startup = self._profiles / "profile_default" / "startup"
        startup.mkdir(parents=True)
        lines = STARTUP.format(work=str(self.work))
        (startup / "00-offline.py").write_text(lines, encoding="utf-8")
        self._plot_settings = folder / "matplotlibrc"
        self._plot_settings.touch()  # empty, so that a person's own settings don't count

    def environment(self, outer: Mapping[str, str]) -> dict[str, str]:
        """The kernel's environment: a short list from `outer`, so no key can be among it."""
        kept = {
            name: value
            for name, value in outer.items()
            if name in KEPT or name.startswith(KEPT_PREFIXES)
        }
        own = {"IPYTHONDIR": str(self._profiles), "MATPLOTLIBRC": str(self._plot_settings)}
        return kept | SAME_EVERYWHERE | own

    def require_entered(self) -> None:
        """RuntimeError if the kernel didn't come through `enter`: IPython only logs that."""
        if not self.work.is_dir():
            raise RuntimeError(
                "the kernel started without its network guard: its IPython startup file failed. "
                "Run `python -c 'import mini_harness.course.offline'` to see why."
            )


@contextmanager
def sandbox() -> Iterator[Sandbox]:
    """A sandbox that goes away at the end, with all that was written into its working folder."""
    with tempfile.TemporaryDirectory(prefix="mini-harness-", ignore_cleanup_errors=True) as folder:
        yield Sandbox(Path(folder))


def enter(work: str) -> None:
    """Called in the kernel, before any cell. The folder comes last: it says that all is done."""
    refuse_network()
    os.environ.pop("PYTEST_CURRENT_TEST", None)  # pytest sets it after `environment` was asked
    Path(work).mkdir()
    os.chdir(work)


def refuse_network() -> None:
    """From now on, whatever in this process leaves for another machine raises NetworkRefused.

    An audit hook sees every connection and look-up made through Python's sockets, and nothing
    can take it out again. Child processes are not covered.
    """
    sys.addaudithook(_refuse)


_ADDRESS_EVENTS = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getnameinfo"}
_NAME_EVENTS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in _ADDRESS_EVENTS:
        address = arguments[-1]
        host = address[0] if isinstance(address, tuple) else None  # a Unix socket has no host
    elif event in _NAME_EVENTS:
        host = arguments[0]
    else:
        return
    if isinstance(host, str | bytes) and not is_loopback(host):
        raise NetworkRefused(host)


def is_loopback(host: str | bytes) -> bool:
    """Whether a host is this machine; any name but localhost would have to be asked for."""
    name = host.decode("utf-8", "replace") if isinstance(host, bytes) else host
    if name in ("", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback

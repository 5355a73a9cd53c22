"""The guard that a lesson's kernel runs under, in a plain process of its own.

No test here can leave the machine, even if the guard is broken: the broadcast address has no
route for a plain socket, AI_NUMERICHOST asks no name server, and sys.audit opens nothing.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from mini_harness.course.offline import Sandbox, is_loopback

pytestmark = pytest.mark.once

GUARDED = """\
import asyncio, socket, sys
from mini_harness.course.offline import NetworkRefused, refuse_network
refuse_network()
FAR = ("255.255.255.255", 9)

def refused(attempt):
    try:
        attempt()
    except NetworkRefused as error:
        return "no network here" in str(error)
    except OSError:
        return False

def connect():
    with socket.socket() as far:
        far.connect(FAR)

def connect_ex():
    with socket.socket() as far:
        far.connect_ex(FAR)

def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far:
        far.sendto(b"x", FAR)

def look_up():
    socket.getaddrinfo("example.invalid", 80, flags=socket.AI_NUMERICHOST)

def near():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(("localhost", server.getsockname()[1])):
            return True
"""


@pytest.mark.parametrize(
    "attempt",
    [
        "connect",
        "connect_ex",
        "datagram",
        "look_up",
        "lambda: asyncio.run(asyncio.open_connection(*FAR))",
        "lambda: sys.audit('socket.gethostbyname', 'example.org')",
        "lambda: sys.audit('socket.gethostbyaddr', '192.0.2.1')",
        "lambda: sys.audit('socket.getnameinfo', ('192.0.2.1', 80))",
        "lambda: sys.audit('socket.getaddrinfo', b'example.org', 80, 0, 0, 0)",
    ],
)
def test_whatever_leaves_this_machine_is_refused_at_once(attempt: str) -> None:
    assert guarded(f"refused({attempt})") == "True"


def test_this_machine_itself_and_unix_sockets_can_be_reached(tmp_path: Path) -> None:
    assert guarded("near()") == "True"
    assert guarded("asyncio.run(asyncio.sleep(0))") == "None"
    path = str(tmp_path / "socket")
    unix = f"refused(lambda: socket.socket(socket.AF_UNIX).connect({path!r}))"
    assert guarded(unix) == "False", "a missing file, not a refusal"


def guarded(expression: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::ResourceWarning", "-c", f"{GUARDED}\nprint({expression})"],
        check=True,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        (b"localhost", True),
        ("::ffff:192.0.2.1", False),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
        ("127.0.0.1.example.org", False),
        (b"\xff", False),
    ],
)
def test_only_this_machine_is_loopback(host: str | bytes, here: bool) -> None:
    assert is_loopback(host) is here


def test_a_kernel_is_given_neither_keys_nor_what_differs_between_machines(tmp_path: Path) -> None:
    """report N05"""
    outer = {
        "PATH": "/somewhere/bin",
        "OPENBLAS_CORETYPE": "old",
        "ANTHROPIC_API_KEY": "sk-1",
        "MODEL_ID": "some-model",
        "AWS_SECRET_ACCESS_KEY": "s",
        "MINI_HARNESS_MODE": "real",
        "TZ": "Asia/Tokyo",
        "USER": "somebody",
        "PYTHONHASHSEED": "1",
        "MPLBACKEND": "agg",
        "COLUMNS": "211",
    }
    inner = Sandbox(tmp_path / "box").environment(outer)
    assert {name: inner[name] for name in outer if name in inner} == {
        "PATH": "/somewhere/bin",
        "OPENBLAS_CORETYPE": "old",
        "MINI_HARNESS_MODE": "offline",
        "TZ": "UTC",
        "USER": "learner",
        "PYTHONHASHSEED": "0",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "COLUMNS": "80",
    }


def test_a_kernel_that_missed_its_guard_is_not_used(tmp_path: Path) -> None:
    """IPython logs a startup file that fails, and goes on."""
    box = Sandbox(tmp_path / "box")
    with pytest.raises(RuntimeError, match="without its network guard"):
        box.require_entered()

"""The `mini-harness` command: thin, each subcommand is imported only when it is called."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; the exit code: 0 done, 1 found something, 2 wrongly asked."""
    parser = _parser()
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help(sys.stderr)
        return 2
    options, rest = parser.parse_known_args(argv)
    _speak_utf8()
    try:
        return _run(parser, options, rest)
    except BrokenPipeError:
        # Whoever read the output went away, as `head` does: nothing is wrong, but there is
        # nobody to write to, and Python would complain about that once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130  # what a shell calls a command that Ctrl-C has ended


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace, rest: list[str]) -> int:
    match options.command:
        case "demo":
            from mini_harness.course import demo

            return demo.main(rest)
        case "build":
            from mini_harness.course import build

            return build.main(rest)
        case "gate":
            from mini_harness import gate_command

            return gate_command.main(rest)
        case command:
            if rest:
                parser.error(f"{command} doesn't know {' '.join(rest)}")
            from mini_harness.course import commands

            return commands.run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mini-harness", description="Build an agent harness step by step.", allow_abbrev=False
    )
    parser.add_argument(
        "--version", action="version", version=f"mini-harness {version('mini-harness')}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    learn = _add(commands, "learn", "open JupyterLab on a lesson")
    learn.add_argument("step", nargs="?", metavar="STEP", help="start, or a step (default: v0)")
    learn.add_argument("--no-browser", action="store_true", help="only print the address")
    learn.add_argument("--port", type=_port, metavar="N", help="default: 8888, or the next free")
    for name, does in (
        ("check", "run the checks of your exercises: 0 if all pass, else 1"),
        ("watch", "check again whenever you save a file, until Ctrl-C"),
    ):
        which = _add(commands, name, does)
        which.add_argument("what", nargs="?", metavar="STEP|ID", help="default: all of them")
    hint = _add(commands, "hint", "the next hint for an exercise")
    hint.add_argument("id", metavar="ID", help="the exercise, as v0-act")
    hint.add_argument("level", nargs="?", type=int, metavar="LEVEL", help="1 is the gentlest")
    solution = _add(commands, "solution", "write the solution beside your own file")
    solution.add_argument("id", metavar="ID", help="an exercise that passes")
    solution.add_argument("--give-up", action="store_true", help="or one that doesn't")
    reset = _add(commands, "reset", "start an exercise again; what you wrote is kept")
    reset.add_argument("id", metavar="ID", help="the exercise, as v0-act")
    _add(commands, "progress", "which exercises pass")
    _add(commands, "update", "get newer versions of the lessons; your changes stay")
    _add(commands, "doctor", "look for what could keep the lessons from running")
    # These read their own arguments, --help too.
    commands.add_parser("gate", help="judge a corpus of cases by rules", add_help=False)
    commands.add_parser("demo", help="the lessons' story, run in the terminal", add_help=False)
    commands.add_parser("build", help="build the notebooks from lessons/", add_help=False)
    return parser


def _add(commands: Any, name: str, does: str) -> argparse.ArgumentParser:
    """A command that works in a learner's workspace."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=does, description=f"{does[0].upper()}{does[1:]}.", allow_abbrev=False
    )
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="default: $MINI_HARNESS_HOME, the current folder if it is one, or ~/mini-harness",
    )
    return parser


def _port(text: str) -> int:
    if text.isdecimal() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port: take a number from 0 to 65535")


def _speak_utf8() -> None:
    """A C locale or an old Windows pipe would stop the output at its first arrow."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())

"""The `mini-harness` command: thin, each subcommand is imported only when it is called."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path


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


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace, rest: list[str]) -> int:
    match options.command:
        case "learn":
            if rest:
                parser.error(f"learn doesn't know {' '.join(rest)}")
            return _learn(options)
        case "demo":
            from mini_harness.course import demo

            return demo.main(rest)
        case _:
            from mini_harness.course import build

            return build.main(rest)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mini-harness", description="Build an agent harness step by step.", allow_abbrev=False
    )
    parser.add_argument(
        "--version", action="version", version=f"mini-harness {version('mini-harness')}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    learn = commands.add_parser("learn", help="open JupyterLab on a lesson", allow_abbrev=False)
    learn.add_argument("step", nargs="?", metavar="STEP", help="the lesson's step (default: v0)")
    learn.add_argument("--no-browser", action="store_true", help="only print the address")
    learn.add_argument("--port", type=_port, metavar="N", help="default: 8888, or the next free")
    learn.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="your copies of the lessons (default: $MINI_HARNESS_HOME or ~/mini-harness)",
    )
    # These two read their own arguments, --help too.
    commands.add_parser("demo", help="the lessons' story, run in the terminal", add_help=False)
    commands.add_parser("build", help="build the notebooks from lessons/", add_help=False)
    return parser


def _port(text: str) -> int:
    if text.isdecimal() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port: take a number from 0 to 65535")


def _learn(options: argparse.Namespace) -> int:
    from mini_harness.course.learn import LearnError, learn

    try:
        return learn(
            options.step,
            workspace=options.workspace,
            port=options.port,
            browser=not options.no_browser,
        )
    except LearnError as error:
        print(f"mini-harness learn: {error}", file=sys.stderr)
        return 2


def _speak_utf8() -> None:
    """A C locale or an old Windows pipe would stop the output at its first arrow."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

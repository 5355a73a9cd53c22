"""What must become of a server's tools, and of whatever a server answers, whoever wrote it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.gated import Raised, attempt
from mini_harness.course.conformance.samples import WHO, listed, text
from mini_harness.course.conformance.stage import LogServerError, plain, raised, wrong
from mini_harness.course.trouble import unknown_name
from mini_harness.frozen import shown

LEGAL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
SERVER = "oncall"
TEAM = {"team": "shop"}
LONG = "who_is_on_call_for_the_shop_and_all_that_belongs_to_it_in_"
DATA = base64.b64encode(b"a picture of a person").decode()


@dataclass
class Server:
    """Answers the same each time, and keeps what it was asked."""

    answer: Any
    asked: list[tuple[Any, Any]] = field(default_factory=list)

    def __call__(self, name: Any, arguments: Any) -> Any:
        self.asked.append((name, dict(arguments)))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def adapt(subject: Subject, tools: Sequence[Mapping[str, Any]], call: Any) -> Mapping[str, Any]:
    """The subject's tools, by name. Each has all that a remote tool has."""
    called, expected = adapts(tools), "a dictionary with a tool for each name"
    made = attempt(called, expected, "", subject.adapt, SERVER, tools, call)
    if not isinstance(made, Mapping):
        wrong(called, shown(made), expected, "Return a dictionary, as `act` takes it.")
    for name, tool in made.items():
        lacks = [each for each in PARTS if not hasattr(tool, each)]
        if lacks or name != tool.name:
            likely = "The key is the tool's own name, and the tool is a RemoteTool."
            wrong(called, f"{name!r}: {shown(tool)}", "a RemoteTool of that name", likely)
    return made


PARTS = ("name", "description", "handler", "input_schema", "read_only")


def adapts(tools: Sequence[Mapping[str, Any]]) -> str:
    return f"adapt({SERVER!r}, listed, call), where the server lists {[t['name'] for t in tools]}"


def ask(subject: Subject, answer: Any) -> Any:
    """What the handler of one tool makes of a server's answer: a text, or a RuntimeError."""
    (tool,) = adapt(subject, [WHO], Server(answer)).values()
    called = answers(answer)
    try:
        said = plain(called, partial(tool.handler, **TEAM))
    except (NotImplementedError, Wrong):
        raise
    except RuntimeError as error:
        return Raised(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it becomes the finding
        likely = unknown_name(error) or (
            "Whatever a server does, there are two ends: a text, or one kind of error. "
            "Catch it, and raise RuntimeError."
        )
        wrong(called, raised(error), "a text, or a RuntimeError", likely)
    if not isinstance(said, str):
        likely = "A model reads text. Make one of the result's `content`."
        wrong(called, shown(said), "a text", likely)
    return said


def answers(answer: Any) -> str:
    what = f"raises {shown(answer)}" if isinstance(answer, BaseException) else f"gives {answer!r}"
    return f"the handler of {WHO['name']}, where call(name, arguments) {what}"


def _passed_on(subject: Subject) -> None:
    tools = [WHO, listed("page", description="Wake somebody up.")]
    made = adapt(subject, tools, Server(text("Ada")))
    if len(made) != 2:
        got = f"{len(made)} tools"
        wrong(adapts(tools), got, "2 tools", "Go through all that is listed.")
    for told, tool in zip(tools, made.values(), strict=True):
        likely = "The server knows best what its tool does and takes: its words are passed on."
        if tool.description != told["description"]:
            got = f"the description {shown(tool.description)}"
            wrong(adapts(tools), got, repr(told["description"]), likely)
        # It may be closed against unknown keys: that is well meant.
        if not isinstance(tool.input_schema, Mapping) or any(
            tool.input_schema.get(key) != value for key, value in told["inputSchema"].items()
        ):
            got = f"the input_schema {shown(tool.input_schema)}"
            wrong(adapts(tools), got, repr(told["inputSchema"]), likely)


def _legal(subject: Subject) -> None:
    tools = [listed(name) for name in ("who", "on call/now?", "wer.weiß", LONG * 2)]
    names = list(adapt(subject, tools, Server(text("Ada"))))
    for name in names:
        if not LEGAL.fullmatch(name):
            likely = (
                "No API takes such a name. Allowed are 1 to 64 ASCII letters, digits, _ and -: "
                "put _ for anything else, and cut what is too long."
            )
            wrong(adapts(tools), f"the name {name!r}", "a legal name", likely)
        if not name.startswith(f"mcp__{SERVER}__"):
            likely = "Two servers may have a tool of the same name. The server's name comes first."
            wrong(adapts(tools), f"the name {name!r}", f"mcp__{SERVER}__…", likely)


def _unique(subject: Subject) -> None:
    for clash in (["page out", "page/out", "page_out"], [f"{LONG}Oslo", f"{LONG}Rome"]):
        tools, server = [listed(name) for name in clash], Server(text("Ada"))
        made = adapt(subject, tools, server)
        if len(made) != len(clash):
            likely = (
                "Two names became the same one, and one tool took the place of the other. "
                "Tell them apart, for instance by a few digits of a hash."
            )
            wrong(adapts(tools), f"only {list(made)}", f"{len(clash)} tools", likely)
        if list(made) != list(adapt(subject, tools, server)):
            likely = "A name must be the same in every run: no random numbers, and not `hash`."
            wrong(f"{adapts(tools)}, twice", f"first {list(made)}", "the same names twice", likely)
        if not all(map(LEGAL.fullmatch, made)):
            likely = "What tells two names apart belongs to the name: cut it to 64 first."
            wrong(adapts(tools), f"the names {list(made)}", "legal names", likely)


def _called(subject: Subject) -> None:
    names = ["page out", "who", f"{LONG}Oslo"]
    tools, server = [listed(name) for name in names], Server(text("Ada"))
    for tool in adapt(subject, tools, server).values():
        asking = partial(tool.handler, team="shop", at=None)
        likely = "The server has answered, and its answer isn't what comes back."
        attempt(f"the handler of {tool.name}", "a text", likely, asking)
    asked = [name for name, _ in server.asked]
    if asked == names[-1:] * len(names):
        likely = (
            "Every handler calls the last tool of the list: it looks at the loop's variable "
            "when it runs. Make it in a function of its own."
        )
        wrong(adapts(tools), f"{asked} were called", f"{names}", likely)
    if asked != names:
        likely = "The server knows its tools by its own names: call(told['name'], arguments)."
        wrong(adapts(tools), f"{asked} were called", f"{names}", likely)
    given, wanted = server.asked[0][1], {"team": "shop", "at": None}
    if given != wanted:
        likely = "The arguments go to the server as they are, None included."
        wrong("the handler, called with team='shop', at=None", f"{given}", f"{wanted}", likely)


def _text(subject: Subject) -> None:
    answer = {"content": [{"type": "text", "text": word} for word in ("Ada", "until six")]}
    said = ask(subject, answer)
    if not isinstance(said, str) or not re.search(r"Ada\s+until six", said):
        likely = "`content` is a list. Join the texts of all its parts, in their order."
        wrong(answers(answer), shown(said), "'Ada' and 'until six', each on its line", likely)


_URI = {"uri": "oncall://rota", "mimeType": "text/csv"}
_OTHERS: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"type": "image", "data": DATA, "mimeType": "image/png"}, ("image", "image/png")),
    ({"type": "resource", "resource": {**_URI, "text": "Ada,18:00"}}, ("Ada,18:00",)),
    ({"type": "resource", "resource": {**_URI, "blob": DATA}}, ("resource",)),
    ({"type": "resource_link", "name": "rota", **_URI}, ("resource",)),
]


def _other_kinds(subject: Subject) -> None:
    for part, names in _OTHERS:
        answer = {"content": [{"type": "text", "text": "Ada"}, part]}
        said = ask(subject, answer)
        if isinstance(said, Raised):
            likely = "Not every part has a text. Look at its `type`, and name what can't be shown."
            wrong(answers(answer), shown(said), "a text", likely)
        if DATA in said:
            likely = "A model can't read base64, and pays for every character. Name it instead."
            wrong(answers(answer), shown(said), "a text without the data", likely)
        if "Ada" not in said or not all(name in said for name in names):
            likely = _what_is_missing(part, said)
            wrong(
                answers(answer),
                shown(said),
                f"a text with 'Ada', {', '.join(map(repr, names))}",
                likely,
            )


def _what_is_missing(part: Mapping[str, Any], said: str) -> str:
    if "text" in part.get("resource", ()):
        return "A resource may hold a text. It is in `part['resource']['text']`: show it."
    if "Ada" in said and part["type"] in said:
        return f"The type is named, and its `mimeType` isn't: a model may know {part['mimeType']}."
    return "A part was dropped without a word. Name its `type` and its `mimeType`."


def _failed(subject: Subject, answer: Any, words: str, likely: str) -> None:
    said = ask(subject, answer)
    if not isinstance(said, Raised):
        wrong(answers(answer), f"{shown(said)} came back", "RuntimeError is raised", likely)
    if words not in str(said.error):
        lost = "What the server said is lost. Put it into the error, with its type: `!r`."
        wrong(answers(answer), shown(said), f"an error with {words!r}", lost)


def _says_error(subject: Subject) -> None:
    likely = (
        "A result with `isError` looks like any other, and here it is taken for an answer. "
        "Ask for it."
    )
    _failed(subject, text("no such team", isError=True), "no such team", likely)
    if isinstance(ask(subject, text("Ada", isError=False)), Raised):
        likely = "`isError` may be there and false. Ask whether it is true."
        wrong(answers(text("Ada", isError=False)), "RuntimeError was raised", "'Ada'", likely)


def _raises(subject: Subject) -> None:
    likely = "The error is swallowed, so that the model takes nothing for an answer."
    _failed(subject, LogServerError("the line is dead"), "the line is dead", likely)
    _failed(subject, EOFError(), "EOFError", likely)


def _nonsense(subject: Subject) -> None:
    for answer in (None, {}, "Ada", {"content": None}, {"content": [{"type": "text"}]}):
        likely = (
            "What is no result of the protocol is taken for one. It is a failure, too. A result "
            "has a list `content`, and each text in it a `text`."
        )
        _failed(subject, answer, "", likely)


def _stop(subject: Subject) -> None:
    likely = "A bare `except:` catches the Stop button too. Write `except Exception`."
    try:
        got = ask(subject, KeyboardInterrupt())
    except KeyboardInterrupt:
        return
    wrong(answers(KeyboardInterrupt()), shown(got), "KeyboardInterrupt goes on up", likely)


def _claims(subject: Subject) -> None:
    claims = listed("page", annotations={"readOnlyHint": True, "idempotentHint": True})
    (tool,) = adapt(subject, [claims], Server(text("Ada"))).values()
    if tool.read_only is not False:
        likely = (
            "The server's word is taken for it. A tool that only claims to read would run "
            "without anybody being asked."
        )
        called = f"adapt(…), where a tool says {claims['annotations']}"
        wrong(called, f"read_only is {tool.read_only!r}", "False", likely)


ADAPTED = (
    Check("v0b-adapt", "Every tool of the server is there, in its own words.", _passed_on),
    Check("v0b-adapt", "Names are legal, and begin with the server's.", _legal),
    Check("v0b-adapt", "No two tools get one name.", _unique),
    Check("v0b-adapt", "A call reaches the tool that was meant, as it was made.", _called),
    Check("v0b-adapt", "What a server only claims doesn't count.", _claims),
    Check("v0b-adapt", "All texts come back, in their order.", _text),
    Check("v0b-adapt", "What is no text is named, and not shown.", _other_kinds),
    Check("v0b-adapt", "A result that says it is an error is one.", _says_error),
    Check("v0b-adapt", "An error that is raised is told.", _raises),
    Check("v0b-adapt", "What is no result is an error.", _nonsense),
    Check("v0b-adapt", "The Stop button works.", _stop),
)

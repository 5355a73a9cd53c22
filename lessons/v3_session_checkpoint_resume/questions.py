"""What the lesson asks. The answers come from runs of the package."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from mini_harness import (
    AskInDoubt,
    DamagedSession,
    Event,
    Harness,
    Layer,
    Run,
    ScriptedModel,
    Session,
    tool,
)
from mini_harness.course.questions import Question
from mini_harness.course.story import call, final
from mini_harness.sync import run_sync

TURNS = [call("mail", to="ann"), final("Done.")]


class Died(Exception):
    """The process ended here."""


class Post:
    def __init__(self) -> None:
        self.sent = 0

    def harness(self, session: Session, *sinks: Callable[[Event], None], **more: object) -> Harness:
        @tool(idempotent=bool(more.get("idempotent")))
        def mail(to: str) -> str:
            """Send a mail."""
            self.sent += 1
            return "sent"

        begun = session.run().step if session.runs else 0
        layers: list[Layer] = [AskInDoubt()] if more.get("asks") else []
        return Harness(
            ScriptedModel(TURNS, asked=begun),
            [mail],
            layers=layers,
            sinks=[*sinks, session],
            clock=session.clock(),
        )


def dies(event: Event) -> None:
    """Right after the effect, and before anybody has recorded it."""
    if event.type == "tool_result":
        raise Died


def taken_up(post: Post, root: Path, **more: object) -> Run:
    """A run whose process died after the effect, taken up in another."""
    session = Session.create(root, session_id="s1")
    try:
        post.harness(session, dies, **more).run_sync("Write to Ann.")
    except Died:
        session.close()
    again = Session.open("s1", root)
    return run_sync(post.harness(again, **more).resume(again.run()))


def status_of_a_plain_call() -> str:
    with tempfile.TemporaryDirectory() as root:
        return taken_up(Post(), Path(root), asks=True).status


def effects_of_an_idempotent_call() -> int:
    post = Post()
    with tempfile.TemporaryDirectory() as root:
        taken_up(post, Path(root), idempotent=True)
    return post.sent


def events_after_a_torn_line() -> int:
    with tempfile.TemporaryDirectory() as root:
        session = Session.create(root, session_id="s1")
        Post().harness(session).run_sync("Write to Ann.")
        session.path.write_bytes(session.path.read_bytes()[:-5])
        return len(list(Session.open("s1", root).events()))


def opened_after_damage_in_the_middle() -> str:
    with tempfile.TemporaryDirectory() as root:
        session = Session.create(root, session_id="s1")
        Post().harness(session).run_sync("Write to Ann.")
        lines = session.path.read_bytes().split(b"\n")
        session.path.write_bytes(b"\n".join([*lines[:3], *lines[4:]]))
        try:
            Session.open("s1", root)
        except DamagedSession as error:
            return f"refused, line {error.line}"
        return "opened"


QUESTIONS = (
    Question(
        "`mail` isn't idempotent. The process died right after it had sent one, before anybody "
        "recorded that. Another process takes the run up, with `AskInDoubt`. What is `run.status`?",
        {
            "completed": "No. Then it would have been sent again, or passed over in silence.",
            "paused": "Yes. A person looks whether it was sent. Until then nothing runs.",
            "failed": "No. Nothing went wrong that a person couldn't settle.",
        },
        status_of_a_plain_call,
    ),
    Question(
        "The same, but `mail` is declared idempotent. How often has the function run in the end?",
        {
            "1": "No. Nobody knows whether it had its effect, so it is asked for again. That "
            "is what the declaration allows.",
            "2": "Yes. It runs again under the same key. A server that knows the key sends one "
            "mail; a tool that ignores it shouldn't be declared idempotent.",
            "3": "No. There were two processes, and each ran it once.",
        },
        effects_of_an_idempotent_call,
    ),
    Question(
        "A run has 6 events. The last 5 bytes of its file are cut off. How many events does "
        "`Session.open` find?",
        {
            "6": "No. The last line has no line end any more, so it isn't a record.",
            "5": "Yes. A torn tail was never acknowledged, so nobody has acted on it.",
            "0": "No. An empty conversation without a word would be the worst of all answers.",
        },
        events_after_a_torn_line,
    ),
    Question(
        "From the middle of the file, line 4 is missing. What does `Session.open` do?",
        {
            "opened": "No. The rest would tell of a result without its call.",
            "refused, line 4": "Yes. What was whole once and is gone is damage. The numbers of the "
            "events show the gap, and the error says where.",
            "refused, line 1": "No. It says where the damage is, and the header is whole.",
        },
        opened_after_damage_in_the_middle,
    ),
)

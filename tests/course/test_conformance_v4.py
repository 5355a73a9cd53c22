"""The suite of v4: right answers pass however they are written, and every check can fail."""

import pytest

from mini_harness.course.conformance import Wrong, conformance
from mini_harness.course.exercises import exercise
from mini_harness.course.judge import judge
from tests.course import mutants
from tests.course.mutants import subject

pytestmark = pytest.mark.once

ACT = exercise("v0-act").solution
SOLUTIONS = {name: exercise(f"v4-{name}").solution for name in ("examine", "chain", "prove")}
WHOLE = (ACT, *SOLUTIONS.values())

RIGHT = {
    "v4-examine": {
        "walks back from the last call": """
from mini_harness import attributable
def examine(record, claim):
    about, later = set(claim.get("about") or ()), []
    for entry in reversed(record):
        if entry["call_id"] == claim["call_id"]:
            break
        later.append(entry["changes"])
    else:
        return "no_such_call"
    touched = [c is None or bool(c) and (not about or not about.isdisjoint(c)) for c in later]
    quote = claim.get("quote")
    findings = {
        "not_ok": not entry["ok"],
        "outdated": any(touched),
        "not_attributable": entry["command"] is not None and not attributable(entry["command"]),
        "not_quoted": quote is not None and (quote.isspace() or quote == ""
                                             or entry["output"].find(quote) < 0),
    }
    return next((name for name, is_so in findings.items() if is_so), "holds")
def standing(findings):
    return {0: "unverified", len(findings): "verified"}.get(findings.count("holds"), "partly") \\
        if findings else "unverified"
""",
    },
    "v4-chain": {
        "no JSON at all, and the whole past in each hash": """
import hashlib, json, os
def _sum(data):
    return hashlib.blake2b(data).hexdigest().encode()
def _read(path):
    data = path.read_bytes() if os.path.exists(path) else b""
    right = 0
    while True:
        end = data.find(b"\\n", right)
        line = data[right : end + 1]
        if end < 0 or line[:128] != _sum(data[:right] + line[128:]):
            return data, right
        right = end + 1
def _head(path):
    head = path.parent / (path.stem + ".head")
    return head, head.read_bytes() if head.exists() else None
def verify(path):
    data, right = _read(path)
    if data and right == len(data) and _head(path)[1] == _sum(data):
        return None
    return data[:right].count(b"\\n") + 1
def add(path, data):
    old, right = _read(path)
    head, said = _head(path)
    before = old[: old.rfind(b"\\n", 0, max(0, len(old) - 1)) + 1]
    new = not old and said is None
    if right != len(old) or not (new or said in (_sum(old), _sum(before))):
        raise ValueError("not whole")
    line = json.dumps(data).encode() + b"\\n"
    path.write_bytes(old + _sum(old + line) + line)
    head.write_bytes(_sum(path.read_bytes()))
""",
    },
    "v4-prove": {
        "one call id for each name, and a bounded loop": """
from collections import Counter
def pursue_proved(model, tools, goal, changes):
    history, record, counts = [{"role": "user", "content": goal}], [], Counter()
    for left in (3, 2, 1, 0):
        while (decision := model.decide(history, list(tools)))["type"] == "tool":
            name = decision["name"]
            counts[name] += 1
            entry = {"call_id": f"{name}#{counts[name]}", "tool": name, "command": None}
            entry["changes"] = changes[name] if name in changes else None
            try:
                entry |= {"output": tools[name].handler(**decision["arguments"]), "ok": True}
            except Exception as error:
                entry |= {"output": repr(error), "ok": False}
            record.append(entry)
            history.append({"role": "tool", "tool": name, "call_id": entry["call_id"],
                            "tool_result": entry["output"]})
        findings = ["nothing"]
        try:
            findings = [examine(record, each) for each in decision["output"]["claims"]]
        except (TypeError, KeyError):
            pass
        if standing(findings) == "verified":
            return decision["output"]["answer"]
        history.append({"role": "user", "content": ", ".join(findings)})
    raise RuntimeError("rejected")
""",
    },
}


@pytest.mark.parametrize(
    ("name", "how"), [(name, how) for name, ways in RIGHT.items() for how in ways]
)
def test_a_right_answer_passes_however_it_is_written(name: str, how: str) -> None:
    checks = [each for each in conformance("v4") if each.exercise == name]
    assert judge(subject(*WHOLE, RIGHT[name][how]), checks)[0] == "passed"


# What is changed in the solutions, and how the message that follows names the likely cause.
MUTANTS = {
    "examine": [
        ('return "holds"\n', 'return "not_quoted"\n', "nothing speaks against the claim"),
        ("if quote is not None and (", "if (quote is None or ", "may do without a quote"),
        ('return "holds"\n', 'return True\n', ""),
        ('        return "no_such_call"\n    place = ids.index(claim["call_id"])',
         '        return "no_such_call" if record else "holds"\n'
         '    place = ids.index(claim["call_id"])', "The record has no call of this id"),
        ('if not cited["ok"]', 'if not cited["output"]', "whatever it printed before"),
        ("not quote.strip() or ", "", "A blank quote stands in every output"),
        ('cited["output"]', '"".join(entry["output"] for entry in record)', "and in no other"),
        ("set(changes) & set(about)", "set(changes) == set(about)", "what the claim is about"),
        ("record[place + 1 :]", "record[:place] + record[place + 1 :]", "Only what comes after"),
        ("set(changes) & set(about)", "True", "isn't what the claim is about"),
        ("not about or ", "about is None or ", "speaks of everything"),
        ("changes is None or ", "", "may have changed everything"),
        ("changes is None or (changes and", 'later["ok"] and (changes is None or changes and',
         "changed half of it"),
        ("record[place + 1 :]", "record[place:]", "doesn't outdate itself"),
        (" and not attributable(cited[\"command\"])", "", "only if its program did"),
        ('if cited["command"] and', 'if False and', "Ask `attributable(line)`"),
        ("if not any(held)", "if False", "all() of nothing"),
        ('if all(held) else "partly"', "", "Some claims hold, and some don't"),
        ('"verified" if all(held)', '"partly" if all(held)', "All claims hold"),
    ],
    "chain": [
        ("head == [lines, hashes[-1]]", "False", "never touched is whole"),
        ("lines > 0 and ", "", "somebody may have taken all of it"),
        ("        if text != line:", '        if b"hash" not in line:', "hash of all that it says"),
        ("return None if whole else len(hashes)", "return None if whole else 1", "must know where"),
        ("        if text != line:", '        if json.loads(text) != json.loads(line):',
         "compare the bytes"),
        ("link(hashes[-1], ", 'link("", ', "Nothing ties"),
        ("head == [lines, hashes[-1]]", "len(hashes) == lines + 1", "A chain without its end"),
        ("head == [lines", "(head or [lines, hashes[-1]]) == [lines", "Without its head"),
        ("if head not in fits", "if False", "look before you add"),
        (", [lines - 1, *hashes[-2:-1]]]", "]", "an add was interrupted there"),
        ("if head not in fits", "if head[0] > lines", "and never two"),
    ],
    "prove": [
        ('return output["answer"]', "return output", "what was claimed is no part of it"),
        ('if standing(findings) == "verified"', "if all(f == 'holds' for f in findings)",
         "An answer without claims"),
        (' and "call_id" in claim', "", "can't be read as a claim"),
        ('if standing(findings) == "verified"',
         'if standing(findings) == "verified" or "standing" in output',
         "of its own standing counts for nothing"),
        ('"ok": ok', '"ok": True', "Record that it did"),
        ('"output": output', '"output": output + "4 passed"', "doesn't stand in what the call"),
        ('== "verified"', '!= "unverified"', "must be verified"),
        ("changes.get(name)", "changes.get(name, [])", "so that is None"),
        ('"changes": changes.get(name)', '"changes": []', "changed after it was checked"),
        ("if sent_back == 3", "if sent_back == 4", "3 times"),
        ("if sent_back == 3", "if sent_back == 2", "3 times"),
        ("if sent_back == 3", "if False", "3 times"),
        ("    record, sent_back = [], 0", "    record, sent_back = kept, 0",
         "record of its own"),
        ('f"Not verified: {findings}"', '"Not verified."', "with its findings"),
        ('"tool": name, "call_id": call_id, "tool_result"', '"tool": name, "tool_result"',
         "put the call's `call_id`"),
    ],
}  # fmt: skip
ROWS = [(name, *row) for name, rows in MUTANTS.items() for row in rows]


@pytest.mark.parametrize(("name", "old", "new", "likely"), ROWS)
def test_what_is_wrong_is_told_by_its_likely_cause(
    name: str, old: str, new: str, likely: str
) -> None:
    """Some check that doesn't hold says it, and says what was called and expected."""
    found = faults_of(name, old, new).values()
    assert any(likely in fault.likely for fault in found), [fault.parts for fault in found]
    assert all(fault.called and fault.got and fault.expected for fault in found)


def test_every_check_is_failed_by_a_mutant() -> None:
    failed = {title for name, old, new, _ in ROWS for title in faults_of(name, old, new)}
    assert failed == {check.title for check in conformance("v4")}


def faults_of(name: str, old: str, new: str) -> dict[str, Wrong]:
    return mutants.faults_of("v4", SOLUTIONS, name, old, new, *WHOLE, "kept = []\n")

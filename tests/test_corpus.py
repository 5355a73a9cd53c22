"""Cases as files: strict, reviewable, without secrets, and each failure once."""

import json
from pathlib import Path
from typing import Any

import pytest

from mini_harness.corpus import BadCase, Case, Corpus, DuplicateCase, script_of
from mini_harness.course.cases import TOOLS
from mini_harness.expectation import Expectation
from mini_harness.faults import Fault
from mini_harness.redact import MASK
from mini_harness.regression import run_case
from mini_harness.results import CaseOutcome, FailureKind
from tests.cases import DONE, PLAIN, READ, case
from tests.loops import call, harness, play, turn

KEY = "sk-ant-api03-" + "x" * 40
TRANSIENT = Fault.from_dict({"kind": "transient", "tool": "read_build", "attempt": 1})


def test_a_case_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    """A27"""
    kept = case(
        script=([READ, READ], "What?", DONE),
        faults=(TRANSIENT,),
        tools=("read_build",),
        tags=("v2",),
        expect=Expectation(output=None, at_most={"read_build": 2}, calls=(("read_build", "ok"),)),
    )
    path = kept.save(tmp_path)
    assert path.name == "a-case.case.json"
    assert Case.load(path) == kept
    assert Case.load(path).to_json() == path.read_text(encoding="utf-8")
    with pytest.raises(FileExistsError):
        kept.save(tmp_path)


def test_a_failed_run_becomes_a_case_that_fails_in_the_same_way() -> None:
    """A27: a failure becomes a repeatable case, and not only a trace"""
    said = [turn(call("read_build", build_id="build-102"), call("oops")), "What?", DONE]
    run, _ = play(said, TOOLS)
    made = Case.from_run(
        run,
        id="oops",
        kind="unknown_tool",
        harness=PLAIN,
        expect=Expectation(calls=(("read_build", "ok"), ("oops", "unknown_tool"))),
    )
    assert made.goal == run.goal
    assert made.kind is FailureKind.UNKNOWN_TOOL
    result = run_case(made)
    assert (result.outcome, result.steps) == (CaseOutcome.PASSED, 3), result.reasons
    assert script_of(run)[2] == {"type": "final", "output": "done"}


def test_no_secret_of_a_run_gets_into_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_TOKEN", "tok-5f4dcc3b5aa765d61d83")
    said = [call("read_build", build_id="tok-5f4dcc3b5aa765d61d83"), DONE]
    run = harness(said, TOOLS)[0].run_sync("go")
    run.goal = f"Use {KEY}."
    made = Case.from_run(
        run, id="s", kind="none", harness=PLAIN, expect=Expectation(status="completed")
    )
    assert KEY not in made.to_json()
    assert "tok-5f4dcc3b5aa765d61d83" not in made.to_json()
    assert made.to_json().count(MASK) == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"id": "Not an id"}, "A case's id is"),
        ({"id": "../up"}, "A case's id is"),
        ({"kind": "bad_luck"}, "must be one of"),
        ({"goal": 5}, "goal must be text"),
        ({"harness": "tests.cases"}, "module:function"),
        ({"harness": "os:system --"}, "module:function"),
        ({"script": []}, "a script or a cassette"),
        ({"cassette": [{"a": 1}]}, "a script or a cassette"),
        ({"answers": ["maybe"]}, "approve or deny"),
        ({"tags": "v0"}, "a list of texts"),
        ({"expect": {}}, "could never fail"),
        ({"expect": {"outputs": 1}}, "expect has no outputs"),
        ({"faults": [{"kind": "transient"}]}, "has a tool and an attempt"),
        ({"schema_version": 2}, "schema version 2"),
        ({"sript": []}, "has no sript"),
        ({"goal": None}, "goal must be text"),
    ],
)
def test_what_is_no_case_is_refused_with_its_file_and_the_reason(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    found = case().to_dict() | change
    path = tmp_path / f"{found['id'] if found['id'] == 'a-case' else 'x'}.case.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(BadCase, match=path.name) as caught:
        Case.load(path)
    assert why in str(caught.value)


@pytest.mark.parametrize("lacking", ["id", "kind", "goal", "harness", "expect", "schema_version"])
def test_what_a_case_lacks_is_named(lacking: str) -> None:
    found = case().to_dict()
    del found[lacking]
    with pytest.raises(BadCase, match=f"lacks {lacking}"):
        Case.from_dict(found)


def test_a_file_that_is_no_json_and_one_of_another_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "b.case.json").write_text("{", encoding="utf-8")
    with pytest.raises(BadCase, match=r"b\.case\.json: "):
        Case.load(tmp_path / "b.case.json")
    (tmp_path / "c.case.json").write_text(case().to_json(), encoding="utf-8")
    with pytest.raises(BadCase, match="holds the case a-case"):
        Case.load(tmp_path / "c.case.json")


def test_one_failure_is_kept_once_whatever_it_is_called() -> None:
    """report C05: duplicate ids; and duplicates by what they show"""
    one = case("one", goal="Do it.")
    told = {**READ, "call_id": "toolu_1", "usage": {"input_tokens": 3}}
    twin = case("two", goal=" Do  it.", script=(told, DONE), title="Another name")
    assert one.fingerprint == twin.fingerprint
    with pytest.raises(DuplicateCase, match="one and two show the same"):
        Corpus((one,)).add(twin)
    with pytest.raises(DuplicateCase, match="have the id one"):
        Corpus((one,)).add(case("one", goal="Something else."))
    for other in (
        case("two", goal="Do that."),
        case("two", goal="Do it.", script=(READ, READ, DONE)),
        case("two", goal="Do it.", faults=(TRANSIENT,)),
        case("two", goal="Do it.", answers=("approve",)),
    ):
        assert len(Corpus((one,)).add(other)) == 2


def test_a_folder_is_loaded_whole_or_as_asked_and_says_so(tmp_path: Path) -> None:
    """report G01: what was asked for stands in the source"""
    case("one", tags=("v0",)).save(tmp_path)
    case("two", kind="endless", tags=("v1",)).save(tmp_path / "deeper")
    assert Corpus.load(tmp_path).ids == ("one", "two")
    assert Corpus.load(tmp_path, ids=["two"]).ids == ("two",)
    assert Corpus.load(tmp_path, kinds=["endless"]).ids == ("two",)
    assert Corpus.load(tmp_path, tags=["v0"]).ids == ("one",)
    none = Corpus.load(tmp_path, tags=["v7"], kinds=["endless"])
    assert len(none) == 0
    assert none.source == f"{tmp_path}, only kind endless and tag v7"
    gone = Corpus.load(tmp_path / "casez")
    assert (len(gone), "no such folder" in gone.source) == (0, True)
    with pytest.raises(ValueError, match="bad_luck"):
        Corpus.load(tmp_path, kinds=["bad_luck"])


def test_a_file_that_cant_be_read_is_never_left_out(tmp_path: Path) -> None:
    case("one").save(tmp_path)
    (tmp_path / "two.case.json").write_text("{}", encoding="utf-8")
    corpus = Corpus.load(tmp_path, ids=["one"])
    assert corpus.ids == ("one", "two")
    assert "two.case.json lacks" in corpus.unreadable[0].why
    with pytest.raises(KeyError, match="The cases are: one, two"):
        corpus["three"]


def test_what_a_case_holds_cant_be_changed() -> None:
    script = [dict(READ), DONE]
    kept = case(script=tuple(script))
    script[0]["name"] = "other"
    assert kept.script[0]["name"] == "read_build"
    with pytest.raises(TypeError):
        kept.script[0]["name"] = "other"

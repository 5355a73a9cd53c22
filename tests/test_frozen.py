"""What is recorded can't change any more, and has exactly one text."""

import copy
import enum
import json
import math
import pickle
from collections import OrderedDict, UserDict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.frozen import (
    MAX_DEPTH,
    MAX_INT_BITS,
    FrozenDict,
    FrozenList,
    NotJson,
    canonical,
    freeze,
    parse_object,
    shown,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


class Colour(str, enum.Enum):  # noqa: UP042 - its str() isn't its value
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Metres(float):
    pass


class NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError("nothing to show")


def nested(levels: int) -> Any:
    """A list in a list in a list."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_frozen_value_shares_nothing_with_its_original() -> None:
    """DESIGN, Event: later mutation can't rewrite the record."""
    original = {"a": [1, {"b": 2}]}
    frozen = freeze(original)
    original["a"].append("late")
    original["a"][1]["b"] = "late"  # type: ignore[index]
    assert frozen == {"a": [1, {"b": 2}]}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.__setitem__("a", 2),
        lambda d: d.__delitem__("a"),
        lambda d: d.__ior__({"a": 2}),
        lambda d: d.clear(),
        lambda d: d.pop("a"),
        lambda d: d.popitem(),
        lambda d: d.setdefault("z", 1),
        lambda d: d.update(a=2),
        lambda d: setattr(d, "extra", 1),
        lambda d: d["list"].__setitem__(0, 2),
        lambda d: d["list"].__setitem__(slice(0, 1), []),
        lambda d: d["list"].__delitem__(0),
        lambda d: d["list"].__iadd__([2]),
        lambda d: d["list"].__imul__(2),
        lambda d: d["list"].append(2),
        lambda d: d["list"].extend([2]),
        lambda d: d["list"].insert(0, 2),
        lambda d: d["list"].remove(1),
        lambda d: d["list"].pop(),
        lambda d: d["list"].clear(),
        lambda d: d["list"].sort(),
        lambda d: d["list"].reverse(),
    ],
)
def test_a_frozen_value_refuses_every_change(change: Callable[[Any], Any]) -> None:
    frozen = freeze({"a": 1, "list": [1]})
    with pytest.raises((TypeError, AttributeError)):
        change(frozen)
    assert frozen == {"a": 1, "list": [1]}


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_a_frozen_value_can_be_copied_and_stays_frozen(copied: Callable[[Any], Any]) -> None:
    twin = copied(freeze({"a": [1, {"b": 2}]}))
    assert twin == {"a": [1, {"b": 2}]}
    assert type(twin) is FrozenDict
    assert type(twin["a"]) is FrozenList
    assert type(twin["a"][1]) is FrozenDict


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        2**MAX_INT_BITS,
        -(2**MAX_INT_BITS),
        b"bytes",
        bytearray(b"bytes"),
        {1, 2},
        object(),
        print,
        1j,
        {1: "x"},
        {None: "x"},
        {True: "x"},
        {"deep": [{"in": math.nan}]},
        nested(MAX_DEPTH + 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_strict_json_is_refused(value: Any) -> None:
    """DESIGN, Event: no NaN. T13: no integer that Python won't print."""
    with pytest.raises(NotJson):
        freeze(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotJson, match="nested deeper"):
        freeze(loop)


def test_the_deepest_nesting_and_the_largest_integer_can_be_written() -> None:
    for value in (nested(MAX_DEPTH + 1), 2**MAX_INT_BITS - 1, -(2**MAX_INT_BITS) + 1):
        assert json.loads(canonical(freeze(value))) == value


def test_special_kinds_of_text_and_number_become_plain_ones() -> None:
    frozen = freeze({"a": Colour.RED, Colour.RED: Level.HIGH, "m": Metres(1.5)})
    assert frozen == {"a": "red", "red": 3, "m": 1.5}
    assert [type(key) for key in frozen] == [str] * 3
    assert [type(item) for item in frozen.values()] == [str, int, float]


def test_every_mapping_and_sequence_becomes_a_plain_frozen_one() -> None:
    frozen = freeze(OrderedDict(a=(1, 2), b=UserDict(c=1)))
    assert (type(frozen), type(frozen["a"]), type(frozen["b"])) == (
        FrozenDict,
        FrozenList,
        FrozenDict,
    )


@given(JSON)
def test_the_canonical_text_is_one_line_of_utf8_and_gives_the_value_back(value: Any) -> None:
    """DESIGN, Event: serialised strictly, U+2028 safe, one line."""
    text = canonical(freeze(value))
    assert not {"\n", "\r", "\u2028", "\u2029"} & set(text)
    assert json.loads(text.encode()) == value


def test_the_canonical_text_depends_on_the_value_alone() -> None:
    """Rule 2: the text is what is hashed and approved."""
    assert canonical(freeze({"b": 1, "a": [1, 2]})) == '{"a":[1,2],"b":1}'
    assert canonical(freeze({"a": (1, 2), "b": 1})) == '{"a":[1,2],"b":1}'
    assert len({canonical(freeze(x)) for x in (1, 1.0, True, "1")}) == 4


def test_line_separators_and_lone_surrogates_are_escaped() -> None:
    text = canonical(freeze("a\u2028b\u2029c\ud800d\udfffe é"))
    assert text == '"a\\u2028b\\u2029c\\ud800d\\udfffe é"'


@pytest.mark.parametrize("text", ["", "  ", "\n\t", "{}", " {} "])
def test_no_text_is_an_object_without_keys(text: str) -> None:
    """Models call a tool without parameters with either."""
    assert parse_object(text) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nested deeper"),
        ('{"a":' * 100_000, "nested deeper"),
        ('{"n": ' + "9" * 5000 + "}", "isn't JSON"),
        ('{"path":"ok","path":"../x"}', "'path' is given twice"),
        ('{"a": {"path":1,"path":2}}', "'path' is given twice"),
        ('{"n": NaN}', "NaN isn't a JSON number"),
        ('{"n": -Infinity}', "-Infinity isn't a JSON number"),
        ("[1]", "a JSON list, not an object"),
        ('"text"', "a JSON str, not an object"),
        ("null", "not an object"),
        ("{'a': 1}", "isn't JSON"),
        ('{"path":"a","content":"lin', "isn't JSON"),
        ('{"a": 1} {"b": 2}', "isn't JSON"),
        ("\ufeff{}", "isn't JSON"),
    ],
    ids=lambda text: text[:20],
)
def test_hostile_argument_text_gives_one_kind_of_error(text: str, said: str) -> None:
    """report T13"""
    with pytest.raises(NotJson, match=said):
        parse_object(text)


@given(st.text() | st.text(alphabet='{}[]":,0123456789eE+-. \\untrueflasd'))
def test_any_text_at_all_gives_an_object_or_that_error(text: str) -> None:
    """report T13"""
    try:
        assert isinstance(parse_object(text), dict)
    except NotJson as error:
        assert str(error)


@pytest.mark.parametrize(
    "value",
    [nested(100_000), 10**5000, NoRepr(), {"in": NoRepr()}],
    ids=["deep", "huge", "x", "in"],
)
def test_describing_a_value_is_never_a_fault_of_its_own(value: Any) -> None:
    text = shown(value)
    assert "can't be shown" in text
    assert type(value).__name__ in text

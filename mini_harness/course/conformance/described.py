"""What a tool's description must say, and what must happen to arguments, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from mini_harness.course.conformance import Check, Subject
from mini_harness.course.conformance.gated import attempt
from mini_harness.course.conformance.samples import book, cut_out, label, last_of, signature
from mini_harness.course.conformance.stage import wrong
from mini_harness.frozen import shown

BUILD = {"build_id": "build-102"}
KEYS = {"name", "description", "input_schema"}
TYPES = {"build_id": "string", "lines": "integer", "numbered": "boolean"}

Function = Callable[..., Any]


def _describe(subject: Subject, function: Function) -> Mapping[str, Any]:
    called, expected = _describes(function), f"a dictionary with {', '.join(sorted(KEYS))}"
    got = attempt(called, expected, "", subject.describe, function)
    if not isinstance(got, Mapping) or set(got) != KEYS:
        likely = "Return three things in a dictionary, by exactly these names."
        wrong(called, shown(got), "a dictionary with name, description, input_schema", likely)
    if not isinstance(got["input_schema"], Mapping):
        likely = "A schema is a dictionary: `model.model_json_schema()` makes it."
        wrong(called, f"the schema {shown(got['input_schema'])}", "a JSON schema", likely)
    return got


def _describes(function: Function) -> str:
    return f"describe({function.__name__}), where it is {signature(function)}"


def _check(subject: Subject, function: Function, arguments: Any, likely: str = "") -> Any:
    """What ``check_arguments`` gives: arguments or a text."""
    called, expected = _checks(function, arguments), "arguments, or a text that says what is wrong"
    likely = likely or "Only the model can mend its arguments: return the error as a text."
    got = attempt(called, expected, likely, subject.check_arguments, function, arguments)
    if not isinstance(got, str | Mapping):
        not_either = "Return a dictionary of arguments if they fit, else a text. `dict(parsed)`"
        wrong(called, shown(got), expected, f"{not_either} makes a dictionary of a model.")
    return got


def _checks(function: Function, arguments: Any) -> str:
    return f"{_checked(function, arguments)}, where it is {signature(function)}"


def _checked(function: Function, arguments: Any) -> str:
    return f"check_arguments({function.__name__}, {arguments!r})"


def _told(subject: Subject, function: Function, arguments: Any, likely: str) -> str:
    """The text about arguments that don't fit."""
    got = _check(subject, function, arguments)
    if not isinstance(got, str):
        wrong(_checks(function, arguments), f"the arguments {dict(got)}", "a text", likely)
    return got


def _from_the_function(subject: Subject) -> None:
    for function in (last_of, label):
        got = _describe(subject, function)
        if got["name"] != function.__name__ or got["description"] != function.__doc__:
            expected = f"name {function.__name__!r}, description {function.__doc__!r}"
            likely = "Name and description come from the function: `__name__`, `inspect.getdoc`."
            got_both = f"name {got['name']!r}, description {got['description']!r}"
            wrong(_describes(function), got_both, expected, likely)


def _fields(subject: Subject) -> None:
    schema = _describe(subject, last_of)["input_schema"]
    fields = schema.get("properties", {})
    types = {name: field.get("type") for name, field in fields.items()}
    if types != TYPES:
        likely = "Give create_model one field for each parameter, with its type and its default."
        wrong(_describes(last_of), f"properties of the types {types}", str(TYPES), likely)
    if schema.get("required") != ["build_id"]:
        got = f"required: {schema.get('required')}"
        likely = "A parameter with a default may be left out. One without has `...` as its default."
        wrong(_describes(last_of), got, "required: ['build_id']", likely)
    defaults = {name: field["default"] for name, field in fields.items() if "default" in field}
    if defaults != {"lines": 3, "numbered": False}:
        likely = "The model is told the defaults too: take them from the signature."
        wrong(_describes(last_of), f"the defaults {defaults}", "lines 3, numbered False", likely)


def _closed(subject: Subject) -> None:
    for function in (last_of, cut_out):
        schema = _describe(subject, function)["input_schema"]
        called = _describes(function)
        if schema.get("additionalProperties") is not False:
            likely = "The schema lets unknown keys by: set additionalProperties to False."
            got = f"additionalProperties {schema.get('additionalProperties')}"
            wrong(called, got, "additionalProperties False", likely)
        for each in _objects(schema):
            if each.get("additionalProperties") is not False:
                likely = "Only the outermost object is closed. What lies in `$defs` needs it too."
                got = f"{each.get('title', 'an object inside')} takes unknown keys"
                wrong(called, got, "additionalProperties False there, too", likely)


def _objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    """All schemas with properties, at whatever depth."""
    if isinstance(schema, list):
        for item in schema:
            yield from _objects(item)
    if isinstance(schema, Mapping):
        if isinstance(schema.get("properties"), Mapping):
            yield schema
        for inner in schema.values():
            yield from _objects(inner)


def _free_keys(subject: Subject) -> None:
    field = _describe(subject, label)["input_schema"]["properties"]["labels"]
    if field.get("additionalProperties") != {"type": "string"}:
        got = f"labels: additionalProperties {field.get('additionalProperties')}"
        likely = "A dictionary's keys are its content. Close only what has `properties`."
        wrong(_describes(label), got, "its keys are free", likely)


def _fits(subject: Subject) -> None:
    given: list[tuple[Function, dict[str, Any], str]] = [
        (last_of, BUILD, "build-102, 3, False"),
        (last_of, {**BUILD, "lines": 1, "numbered": True}, "build-102, 1, True"),
        (cut_out, {**BUILD, "windows": [{"first": 2}]}, "build-102: 2 to 9"),
        (label, {**BUILD, "labels": {"flaky": "yes"}}, "build-102: {'flaky': 'yes'}"),
    ]
    for function, arguments, expected in given:
        _must_fit(subject, function, arguments, expected, "These fit.")


def _as_json(subject: Subject) -> None:
    arguments = {"machine": "oak", "day": "2026-01-02", "kind": "nightly", "hours": [8, 18]}
    likely = (
        "Arguments arrive as JSON, where a date or an enum is a text, and a tuple a list. Strict "
        "is right, but say that it is JSON: `model_validate_json(json.dumps(arguments), …)`."
    )
    _must_fit(subject, book, arguments, "oak: 02.01.2026, NIGHTLY, 8 to 18", likely)


def _must_fit(
    subject: Subject, function: Function, arguments: Any, expected: str, refused: str
) -> None:
    """A finding unless the function takes what comes back. ``refused``: why it may be a text."""
    got = _check(subject, function, arguments, refused)
    if isinstance(got, str):
        wrong(_checks(function, arguments), shown(got), "the arguments", refused)
    called = f"{function.__name__}(**{_checked(function, arguments)})"
    likely = "Return the arguments as the function takes them: `dict(parsed)`."
    result = attempt(called, repr(expected), likely, partial(function, **got))
    if result != expected:
        wrong(called, shown(result), repr(expected), likely)


def _unknown(subject: Subject) -> None:
    given: list[tuple[Function, dict[str, Any], str]] = [
        (last_of, {**BUILD, "limit": 1}, "limit"),
        (cut_out, {**BUILD, "windows": [{"first": 2, "until": 4}]}, "until"),
    ]
    for function, arguments, key in given:
        likely = (
            "An unknown key is dropped without a word, and the tool runs on its default. "
            'Refuse it at every level: `extra="forbid"`.'
        )
        got, called = _told(subject, function, arguments, likely), _checks(function, arguments)
        if key not in got:
            wrong(called, shown(got), f"a text that names {key!r}", "Say which key is at fault.")
    arguments = {**BUILD, "limit": 1}
    got = _told(subject, last_of, arguments, likely)
    if not all(name in got for name in TYPES):
        likely = "The model isn't told which keys there are, so it has to guess again."
        wrong(
            _checks(last_of, arguments),
            shown(got),
            f"a text that also names {', '.join(TYPES)}",
            likely,
        )


def _at_fault(subject: Subject, arguments: dict[str, Any], likely: str, *names: str) -> None:
    """A finding unless the text says of each of these fields that it is at fault.

    The names of all fields are in it anyway: one at fault is there once more.
    """
    got = _told(subject, last_of, arguments, likely)
    usual = _told(subject, last_of, {**BUILD, "limit": 1}, likely)
    for name in names:
        if got.count(name) <= usual.count(name):
            say = "Say which field is at fault: it is `loc` in each of `error.errors()`."
            wrong(
                _checks(last_of, arguments), shown(got), f"a text that says what {name} lacks", say
            )


def _strict(subject: Subject) -> None:
    likely = (
        "Pydantic converts what doesn't fit, unless it is told to be strict. Then "
        '"no" is a yes or a no that nobody said: `strict=True`.'
    )
    given: list[tuple[str, Any]] = [("lines", "3"), ("lines", True), ("numbered", 1)]
    for name, value in [*given, ("numbered", "no"), ("build_id", 102)]:
        _at_fault(subject, {**BUILD, name: value}, likely, name)


def _missing(subject: Subject) -> None:
    likely = "A parameter without a default must be there."
    _at_fault(subject, {"lines": 1}, likely, "build_id")
    _at_fault(subject, {"lines": "1"}, likely, "build_id", "lines")


def _no_object(subject: Subject) -> None:
    for arguments in (["build-102"], "build-102", None):
        likely = "A model may send anything. What is no object has to end in a text, too."
        got = _check(subject, last_of, arguments, likely)
        if not isinstance(got, str):
            wrong(_checks(last_of, arguments), f"the arguments {got}", "a text", likely)


DESCRIBED = (
    Check("v0b-describe", "Name and description come from the function.", _from_the_function),
    Check("v0b-describe", "Each parameter is a field, with its type and default.", _fields),
    Check("v0b-describe", "The schema is closed at every level.", _closed),
    Check("v0b-describe", "A dictionary's own keys stay free.", _free_keys),
    Check("v0b-describe", "Arguments that fit come back as the function takes them.", _fits),
    Check("v0b-describe", "Arguments are JSON, where a date is a text.", _as_json),
    Check("v0b-describe", "An unknown key is refused, and the known ones are named.", _unknown),
    Check("v0b-describe", "Nothing is converted.", _strict),
    Check("v0b-describe", "Every field at fault is named.", _missing),
    Check("v0b-describe", "What is no object is told, too.", _no_object),
)

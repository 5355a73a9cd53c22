"""The schema that a server gives for a tool's arguments: can calls be checked against it?

A server is somebody else's program. Its schema may be wrong, refer to an address on the net, or
hold a regular expression that takes for ever. What can't be used safely is refused here, before a
model sees it. Nothing is ever fetched.
"""

from __future__ import annotations

import json
import re
import warnings
from typing import TYPE_CHECKING, Any

from mini_harness.frozen import NotJson, freeze

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

LARGEST = 256 * 1024
"""The longest schema that is taken, in bytes of JSON."""

DRAFT = "https://json-schema.org/draft/2020-12/schema"
"""The draft of a schema that names none: MCP says so."""

Schema = dict[str, Any]

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_FIXED = re.compile(r"(?<!\))\{\d+\}")


class UnusableSchema(ValueError):
    """A schema that no call can be checked against. The text says why."""


def usable(schema: Any) -> tuple[type[Validator], Schema]:
    """The class that validates by the schema's draft, and a copy of the schema.

    Raises UnusableSchema. Needs jsonschema, from the extra ``mcp``.
    """
    plain = _plain(schema)
    validator = _validator(plain)
    _check_form(validator, plain)
    _check_parts(validator, plain)
    return validator, plain


def _plain(schema: Any) -> Schema:
    """A copy of a bounded size and depth, in dicts and lists, with ``type: object``."""
    try:
        frozen = freeze(schema)
    except NotJson as error:
        raise UnusableSchema(f"it can't be read: {error}") from None
    text = json.dumps(frozen)
    if len(text) > LARGEST:
        raise UnusableSchema(f"it has {len(text):,} bytes, and at most {LARGEST:,} are taken")
    if not isinstance(frozen, dict) or frozen.get("type", "object") != "object":
        raise UnusableSchema("it describes no JSON object")
    plain: Schema = json.loads(text)
    return plain if "type" in plain else {**plain, "type": "object"}


def _validator(schema: Schema) -> type[Validator]:
    from jsonschema.validators import Draft3Validator, validator_for

    draft = schema.get("$schema", DRAFT)
    # Draft 3 is another language in places, and nobody writes it any more.
    found = validator_for({"$schema": draft} if isinstance(draft, str) else {}, Draft3Validator)
    if found is Draft3Validator:
        raise UnusableSchema(f"its $schema is unknown: {draft!r:.200}")
    return found


def _check_form(validator: type[Validator], schema: Any) -> None:
    from jsonschema import SchemaError

    try:
        validator.check_schema(schema)
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path)) or "the top"
        raise UnusableSchema(f"it is no JSON schema: at {place}, {error.message:.200}") from None


def _check_parts(validator: type[Validator], schema: Schema) -> None:
    """Look at every schema inside, and at those that are only referred to."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    specification = specification_with(schema.get("$schema", DRAFT))
    # A registry of its own: what isn't in the schema can't be found, and isn't looked for.
    registry: Registry[Any] = Registry()
    root = specification.create_resource(schema)
    waiting = [(registry.resolver_with_root(root), schema)]
    seen: set[int] = set()
    while waiting:
        resolver, found = waiting.pop()
        if not isinstance(found, dict) or id(found) in seen:
            continue
        seen.add(id(found))
        if found is not schema and "$schema" in found:
            raise UnusableSchema("a part of it has a $schema of its own")
        _check_patterns(found)
        for reference in filter(None, map(found.get, _REFERENCES)):
            try:
                target = resolver.lookup(reference)
            except (Unresolvable, ValueError):
                reason = f"it refers to {reference!r:.200}, which isn't in it"
                raise UnusableSchema(reason) from None
            # It may lie where no schema is expected, so that nobody has looked at it yet.
            _check_form(validator, target.contents)
            waiting.append((target.resolver, target.contents))
        for inner in specification.subresources_of(found):
            part = specification.create_resource(inner)
            waiting.append((resolver.in_subresource(part), inner))


def _check_patterns(schema: Schema) -> None:
    names = schema.get("patternProperties", {})
    for pattern in (schema.get("pattern", ""), *names):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            reason = f"Python can't read its pattern {pattern!r:.200}: {error}"
            raise UnusableSchema(reason) from None
    for name in names:
        if not is_quick(name):
            raise UnusableSchema(f"its pattern for names may take for ever: {name!r:.200}")


def is_quick(pattern: str) -> bool:
    """Whether searching this pattern takes at most the square of the text's length, for sure.

    Python's engine tries every way to divide a text among repetitions and alternatives, and while
    it does, nothing else in the process runs. One of them alone leaves it one way.
    """
    bare = _FIXED.sub("", _CLASS.sub("x", pattern)).replace("(?", "(")
    alternatives = bare.count("(") if "|" in bare else 0
    return len(re.findall(r"[*+?{]", bare)) + alternatives <= 1

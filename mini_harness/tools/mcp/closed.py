"""A schema that refuses the keys it doesn't know (report T04).

The schemas of real servers leave unknown keys open. Then an argument that a model made up or
misspelt is dropped, and the tool runs on its default, "successfully".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

Schema = dict[str, Any]

_PARTS = ("allOf", "if", "then", "else", "not", "dependentSchemas", "dependencies")
_BESIDE = {*_PARTS, "$ref", "anyOf", "oneOf", "patternProperties", "dependentRequired"}
"""With one of these, its own ``properties`` aren't all that a schema says about an object."""

_OPEN_OR_CLOSED = {"additionalProperties", "unevaluatedProperties"}
_NAMED_PARTS = ("$anchor", "$dynamicAnchor", "$recursiveAnchor", "$dynamicRef", "$recursiveRef")


def closed(schema: Schema) -> Schema:
    """A copy that refuses unknown keys wherever that changes nothing for the known ones.

    That is so where ``properties`` alone says which keys an object has, and nothing is said about
    others. It is not so in a part of ``allOf``, which must let the keys of the other parts by; in
    a form of ``anyOf`` or ``oneOf``, unless no other form is an object; and where ``required`` has
    a key that ``properties`` hasn't. A schema that calls its parts by other names than ``#/…``
    paths is left as it is.
    """
    plain: Schema = json.loads(json.dumps(schema))
    uses = _Uses(plain)
    for found in uses.alone() if uses.known else ():
        if _lists_its_keys(found):
            found["additionalProperties"] = False
    return plain


class _Uses:
    """Which schemas are used, and which of them nowhere beside another for the same object."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.known = True
        """False if a part may be used from where nobody looked."""
        self._schemas: dict[int, Schema] = {}
        self._beside: set[int] = set()
        visited: set[tuple[int, bool]] = set()
        waiting: list[tuple[Any, bool]] = [(root, True)]
        while waiting:
            schema, alone = waiting.pop()
            if not isinstance(schema, dict) or (id(schema), alone) in visited:
                continue
            visited.add((id(schema), alone))
            self._schemas[id(schema)] = schema
            if not alone:
                self._beside.add(id(schema))
            waiting += self._children(schema, alone)
            waiting += self._same_object(schema, alone)
            named = any(name in schema for name in _NAMED_PARTS)
            self.known &= not named and (schema is root or not {"$id", "id"}.intersection(schema))

    def alone(self) -> Iterator[Schema]:
        return (found for key, found in self._schemas.items() if key not in self._beside)

    def _children(self, schema: Schema, alone: bool) -> Iterator[tuple[Any, bool]]:
        """The schemas of what is inside the object or the list."""
        alone = alone and not _BESIDE.intersection(schema)
        for name in ("properties", "patternProperties", *_OPEN_OR_CLOSED):
            yield from ((inner, alone) for inner in _each(schema.get(name), name))
        alone = alone and "contains" not in schema
        for name in ("items", "prefixItems", "additionalItems", "unevaluatedItems"):
            yield from ((inner, alone) for inner in _each(schema.get(name), name))
        yield schema.get("contains"), False

    def _same_object(self, schema: Schema, alone: bool) -> Iterator[tuple[Any, bool]]:
        """The schemas that describe what this one describes."""
        alone = alone and len({*_BESIDE, "properties"}.intersection(schema)) == 1
        for name in ("anyOf", "oneOf"):
            forms = schema.get(name, [])
            only = alone and sum(map(_may_be_object, forms)) == 1
            yield from ((form, only) for form in forms)
        if "$ref" in schema:
            yield self._target(schema["$ref"]), alone
        for name in _PARTS:
            yield from ((part, False) for part in _each(schema.get(name), name))

    def _target(self, reference: str) -> Any:
        """What a path like ``#/$defs/Place`` leads to."""
        found: Any = self.root
        start, *steps = reference.split("/")
        self.known &= start == "#"
        for step in steps if start == "#" else ():
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            found = found[int(key)] if isinstance(found, list) else found[key]
        return found


def _each(value: Any, keyword: str) -> Iterator[Any]:
    """The schemas that a keyword holds: one, a list, or some with names."""
    by_name = ("properties", "patternProperties", "dependentSchemas", "dependencies")
    if isinstance(value, dict) and keyword in by_name:
        yield from value.values()
    elif isinstance(value, list):
        yield from value
    else:
        yield value


def _may_be_object(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return bool(schema)
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if values is not None:
        return any(isinstance(value, dict) for value in values)
    return "object" in schema.get("type", "object")


def _lists_its_keys(schema: Schema) -> bool:
    keys = schema.get("properties")
    if not isinstance(keys, dict) or (_BESIDE | _OPEN_OR_CLOSED).intersection(schema):
        return False
    needed = schema.get("required", [])
    return keys.keys() >= set(needed) and schema.get("minProperties", 0) <= len(keys)

"""What a server answers, as a text that a model reads."""

import base64
from typing import Any

from mcp_types import CallToolResult

from mini_harness.tools.mcp.content import MEDIA_ROOM, Flattened, flatten_result


def flat(*content: dict[str, Any], **more: Any) -> Flattened:
    result = CallToolResult.model_validate({"content": list(content), **more}, by_name=False)
    return flatten_result(result, "mcp__s__read_resource")


def image(size: int, kind: str = "image") -> dict[str, Any]:
    data = base64.b64encode(b"x" * size).decode()
    return {"type": kind, "mimeType": f"{kind}/test", "data": data}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def resource(**contents: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "x://y", **contents}}


def test_texts_stand_one_below_the_other_in_their_order() -> None:
    """B17"""
    assert flat(text("one\n"), text(""), text("two")).text == "one\n\n\ntwo"


def test_of_an_image_and_a_sound_the_model_is_told_kind_type_and_size() -> None:
    """B17"""
    seen = flat(text("Look:"), image(4_033), image(2, "audio"))
    assert seen.text == (
        "Look:\n[image, image/test, 4,033 bytes: not shown as text]\n"
        "[audio, audio/test, 2 bytes: not shown as text]"
    )


def test_what_is_no_text_is_kept_while_it_is_small() -> None:
    small, large = image(100), image(MEDIA_ROOM)
    seen = flat(small, large, small)
    kept = {"kind": "image", "mime_type": "image/test", "data": small["data"]}
    assert seen.metadata == {"media": [kept, kept]}
    assert "too large to keep" in seen.text.split("\n")[1]
    assert flat(text("only text")).metadata == {}


def test_all_that_is_kept_of_one_answer_has_one_bound() -> None:
    seen = flat(*[image(MEDIA_ROOM // 4)] * 10)
    assert sum(len(each["data"]) for each in seen.metadata["media"]) <= MEDIA_ROOM


def test_a_link_says_how_to_read_it() -> None:
    """B17"""
    link = {"type": "resource_link", "uri": "x://y", "name": "The Y", "mimeType": "text/plain"}
    told = "[link to resource x://y, The Y, text/plain] Read it with mcp__s__read_resource."
    assert flat(link).text == told
    assert flat({**link, "description": "All about Y."}).text == f"{told}\nAll about Y."


def test_an_embedded_resource_is_its_text_or_its_size() -> None:
    """B17"""
    assert flat(resource(text="hello", mimeType="text/plain")).text == (
        "[resource x://y, text/plain]\nhello"
    )
    assert flat(resource(text="")).text == "[resource x://y]\n"
    seen = flat(resource(blob=base64.b64encode(b"abcde").decode(), mimeType="application/zip"))
    assert seen.text == "[resource x://y, application/zip, 5 bytes: not shown as text]"
    assert seen.metadata["media"][0]["data"] == "YWJjZGU="


def test_structured_content_counts_where_there_is_nothing_else() -> None:
    """B17: beside a text or an image it says the same once more, base64 and all"""
    data = {"a": [1, 1.0, None, "é"]}
    assert flat(text("said"), structuredContent=data).text == "said"
    assert flat(image(2), structuredContent=data).text == flat(image(2)).text
    assert flat(structuredContent=data).text == '{"a": [1, 1.0, null, "é"]}'
    assert flat().text == ""

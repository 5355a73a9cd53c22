"""What comes from npm is pinned as all else is: by version and hash, without an address."""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / name).read_text(encoding="utf-8"))
    return found


def test_every_package_has_a_hash_and_none_an_address() -> None:
    packages = read("package-lock.json")["packages"]
    fetched = {place: each for place, each in packages.items() if place}
    assert len(fetched) > 100
    assert [place for place, each in fetched.items() if "resolved" in each] == []
    wrong = [
        place
        for place, each in fetched.items()
        if not re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", each.get("integrity", ""))
    ]
    assert wrong == []


def test_what_is_asked_for_is_one_version_and_the_one_that_is_locked() -> None:
    asked = read("package.json")
    packages = read("package-lock.json")["packages"]
    wanted = {**asked["dependencies"], **asked["optionalDependencies"]}
    locked = {name: packages[f"node_modules/{name}"]["version"] for name in wanted}
    assert locked == wanted

"""Where credentials are kept, and where a text leads."""

import os
from pathlib import Path

import pytest

from mini_harness.policy import Policy, Verdict
from mini_harness.sensitive import PathPattern, is_sensitive, place_if_any, place_of
from mini_harness.tools.call import Call
from mini_harness.tools.function import tool


@tool(read_only=True)
def look_up(key: str, more: dict[str, list[str]] | None = None) -> str:
    """Look something up. It declares no paths."""
    return key


def denied(cwd: Path, **arguments: object) -> bool:
    found = Policy(["look_up"], mode="full_auto").judge(Call(look_up, "c", arguments), cwd)
    return found[:2] == (Verdict.DENY, "sensitive-path")


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/.ssh", "/home/me/.ssh/config", "/w/.aws/credentials", "/w/.azure/x", "/w/.gnupg",
        "/w/.docker/config.json", "/w/.kube/config", "/w/.config/gcloud/x", "/w/.netrc",
        "/w/_netrc",
        "/w/.pgpass", "/w/.pypirc", "/w/.npmrc", "/w/.git-credentials", "/w/.env", "/w/.env.local",
        "/w/.env.example.bak", "/w/.ENV", "/w/.SSH/x", "/w/.\u017fsh/x", "/w/id_rsa",
        "/w/id_ed25519",
        "/w/key.pem", "/w/key.p12", "/etc/passwd", "/etc/shadow", "/etc/shadow-", "/etc/sudoers",
        "/private/etc/passwd", "/proc/1/environ", "/proc/self/task/7/environ",
        "/etc/ssh/ssh_host_ed25519_key", "/var/run/secrets/kubernetes.io/x", "/run/secrets",
        "/w/.config/gh/hosts.yml", "/w/.envrc", "/w/prod.env", "/w/id_rsa.old", "/w/id_rsa.bak",
        "/w/id_ecdsa_sk", "/w/.netrc~", "/w/key.pem.bak", "/w/.env.bak", "/w/.env~", "/proc/1/mem",
        "/w/C:\\Users\\me\\.ssh\\id_rsa",
    ],
)  # fmt: skip
def test_a_place_of_credentials_is_known_anywhere_and_in_any_case(path: str) -> None:
    """B20, C22"""
    assert is_sensitive(path)


@pytest.mark.parametrize(
    "path",
    [
        "/w/.env.example", "/w/.env.sample", "/w/.env.template", "/w/process.env",
            "/w/example.env", "/w/environment", "/w/src/import.meta.env", "/w/env", "/w/.envoy",
        "/w/ssh", "/w/my.ssh", "/w/.sshd", "/w/.config/x", "/w/etc/passwd", "/etc/passwd.d",
        "/w/id_rsa.pub", "/w/pem", "/w/docs/aws", "/w/src/.github/x", "/proc/1/status", "/",
    ],
)  # fmt: skip
def test_what_only_looks_alike_is_none(path: str) -> None:
    assert not is_sensitive(path)


def test_a_link_anywhere_on_the_way_hides_nothing(tmp_path: Path) -> None:
    """B10, issue 4 sharp fault 3"""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "a").symlink_to(".ssh", target_is_directory=True)
    (tmp_path / "b").symlink_to("a", target_is_directory=True)
    (tmp_path / "plain").symlink_to(".ssh/id")
    for text in ("a/config", "b/config", "b", "plain", "./plain", "x/../b/y", "b/."):
        assert place_of(text, str(tmp_path)).sensitive, text
        assert denied(tmp_path, key=text), text
    assert not denied(tmp_path, key="c")


def test_a_parent_of_a_link_is_the_parent_of_where_it_leads(tmp_path: Path) -> None:
    """B10: ``link/..`` isn't the folder that holds the link."""
    (tmp_path / ".aws" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(".aws/deep", target_is_directory=True)
    place = place_of("link/../credentials", str(tmp_path))
    assert place.written == str(tmp_path / "credentials")
    assert place.sensitive


def test_the_folder_that_the_harness_works_in_may_be_sensitive_itself(tmp_path: Path) -> None:
    folder = tmp_path / ".aws"
    folder.mkdir()
    assert denied(folder, key="credentials")


@pytest.mark.parametrize("text", ["~/.ssh/id_rsa", "~", "//etc/passwd", "/etc/../etc/passwd"])
def test_a_text_is_taken_apart_as_the_system_does(text: str, tmp_path: Path) -> None:
    place = place_of(text, str(tmp_path))
    assert place.written.startswith("/")
    assert not place.written.startswith("//")
    assert ".." not in place.written
    assert place.sensitive is (text != "~")


def test_every_text_of_a_tool_that_declares_no_paths_is_judged(tmp_path: Path) -> None:
    """B20, issue 4 sharp fault 1"""
    assert denied(tmp_path, key="x", more={"a": ["b", ".env"]})
    assert denied(tmp_path, key="x", more={".env": []})
    assert denied(tmp_path, key="see ~/.ssh/config")
    assert not denied(tmp_path, key="x", more={"a": ["b"]})


@pytest.mark.parametrize(
    "text",
    [
        "file:///etc/shadow", " /etc/shadow", "/etc/shadow\n", "path=/etc/shadow", "/etc/passwd:1",
        '{"p":"/etc/shadow"}', "[/etc/shadow]", "a, /etc/shadow", "@/etc/shadow", "here=link:3",
        " " * 5_000 + "/etc/shadow",
    ],
)  # fmt: skip
def test_a_path_within_a_text_is_found(text: str, tmp_path: Path) -> None:
    """B20: of a tool that declares no paths nobody knows how it reads its arguments."""
    (tmp_path / "link").symlink_to("/etc/shadow")
    assert denied(tmp_path, key=text)


@pytest.mark.parametrize("text", ["", "\0", "a\0/.env", "x" * 5_000, "/.env/" + "x" * 5_000])
def test_a_text_that_no_system_call_takes_is_no_path(text: str, tmp_path: Path) -> None:
    assert place_if_any(text, str(tmp_path)) is None
    assert not denied(tmp_path, key=text)


def test_half_a_character_hides_nothing(tmp_path: Path) -> None:
    place = place_if_any("\ud800/.env", str(tmp_path))
    assert place is not None
    assert place.sensitive


def test_a_circle_of_links_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert not denied(tmp_path, key="a")
    assert denied(tmp_path, key="a/.env")


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("a", "a", True),
        ("a", "a/b/c", True),
        ("a", "ab", False),
        ("a/*", "a", False),
        ("a/*", "a/b/c", True),
        ("*.py", "x.py", True),
        ("*.py", "d/x.py", False),
        ("**/*.py", "x.py", True),
        ("**/*.py", "d/e/x.py", True),
        ("a/**/z", "a/z", True),
        ("a/**/z", "a/b/c/z", True),
        ("a/**/z", "a/b/c", False),
        ("a/../b", "b", True),
        (".", "anything", True),
        ("**", "anything", True),
        ("/elsewhere", "a", False),
        ("[ab]", "b", True),
    ],
)
def test_a_star_stays_within_a_part_and_two_do_not(
    pattern: str, path: str, fits: bool, tmp_path: Path
) -> None:
    """B22"""
    cwd = os.path.realpath(tmp_path)
    place = place_of(path, cwd)
    assert PathPattern(pattern).covers(place, cwd) is fits
    assert PathPattern(pattern).touches(place, cwd) is fits


@pytest.mark.parametrize("name", ["a[1]", "a*", "a?", "[", "plain"])
def test_the_name_of_the_folder_worked_in_is_no_pattern(name: str, tmp_path: Path) -> None:
    """B22: else a DENY is silent in ``a[1]``, and an ALLOW there is one for ``a1``."""
    here, other = tmp_path / name, tmp_path / "a1"
    for folder in (here, other):
        folder.mkdir()
    for text in ("out", "out/**", "o*/**", str(here).replace("[", "[[]") + "/out"):
        pattern = PathPattern(text)
        assert pattern.touches(place_of("out/x", str(here)), str(here)), text
        assert pattern.covers(place_of("out/x", str(here)), str(here)), text
        elsewhere = place_of(str(other / "out" / "x"), str(here))
        if not text.startswith("/"):
            assert not pattern.touches(elsewhere, str(here))
            assert not pattern.covers(elsewhere, str(here))


def test_the_name_of_the_home_folder_is_no_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B22"""
    monkeypatch.setenv("HOME", str(tmp_path / "me[1]"))
    for text in ("~/x", "~/x/*", "~/*"):
        pattern = PathPattern(text)
        assert pattern.touches(place_of("~/x/y", "/"), "/")
        assert not pattern.touches(place_of(str(tmp_path / "me1/x/y"), "/"), "/")


def test_a_pattern_may_start_at_home_and_a_harness_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real", target_is_directory=True)
    home = place_of("~/x/y", str(tmp_path))
    assert PathPattern("~/x").touches(home, str(tmp_path))
    cwd = str(tmp_path / "link")
    place = place_of(str(tmp_path / "real" / "data"), cwd)
    assert PathPattern("data").touches(place, cwd)
    assert PathPattern("data").covers(place, cwd)
    behind = PathPattern(str(tmp_path / "link" / "**"))
    assert behind.touches(place, str(tmp_path)), "the pattern's own link is followed"
    assert not behind.covers(place, str(tmp_path)), "but not for an allow rule"

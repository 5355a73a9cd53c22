"""The ladder: what each step adds, and that no step leans on a later one."""

import ast
import importlib
import itertools
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

import mini_harness
from mini_harness.steps import BESIDE, MODULES, ROOMS, STEPS, Step, step

PACKAGE = Path(mini_harness.__file__).parent
ROOT = PACKAGE.parent
NOTEBOOK = {"ipywidgets", "matplotlib", "IPython"}
HOMES = {name: module for module, names in MODULES.items() for name in names}
NOTEBOOK_ROOMS = ("mini_harness.views", "mini_harness.course")
DOORS = {
    "mini_harness.trace": {"mini_harness.views.timeline", "mini_harness.views.timeline.Timeline"}
}
"""``trace.timeline()`` draws. It opens the drawing room when it is called, and not before."""
LONGEST_LOOP = 120
LADDER = [
    Step("v0", "Below", {"mini_harness.loop": ()}),
    Step("v1", "Above", {"mini_harness.policy": ()}),
]
"""A ladder of two modules, to try the rule on."""


def file_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes, those in functions too, without what only a type checker reads."""
    yield node
    for child in ast.iter_child_nodes(node):
        if is_for_types_only(child):
            assert isinstance(child, ast.If)
            for other in child.orelse:
                yield from runtime_nodes(other)
        else:
            yield from runtime_nodes(child)


def imported(source: str, package: str = "") -> set[str]:
    """The modules that this source imports when it runs, and the names it takes from them."""
    found: set[str] = set()
    for node in runtime_nodes(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            found.add(origin)
            found.update(f"{origin}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found.update(
                argument.value
                for argument in node.args[:1]
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            )
    return found


def within(name: str, rooms: Iterable[str]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def home(name: str) -> str:
    """The module of a public name that is taken from the package itself."""
    package, _, public = name.rpartition(".")
    return HOMES.get(public, name) if package == "mini_harness" else name


def is_module(name: str) -> bool:
    return within(name, ["mini_harness"]) and file_of(name).is_file()


def upward_arrows(steps: Iterable[Step], imports: Mapping[str, set[str]]) -> list[str]:
    """Every import of a module of ours by a step that doesn't know it (yet)."""
    arrows, known = [], set()
    ladder = list(steps)
    rooms = {module for each in ROOMS.values() for module in each.modules}
    listed = {module for each in ladder for module in each.modules} | rooms | set(BESIDE)
    for each in ladder:
        known |= set(each.modules)
        for module in each.modules:
            for name in sorted(map(home, imports[module])):
                ours = name in listed or (is_module(name) and file_of(name).name != "__init__.py")
                if (ours and name not in known) or within(name, NOTEBOOK_ROOMS):
                    arrows.append(f"{each.name}: {module} imports {name}")
    return arrows


def test_a_step_leans_on_no_later_step_and_on_no_notebook() -> None:
    """A28, DESIGN: a module imports only from steps at or below its own"""
    imports = {
        module: imported(file_of(module).read_text(encoding="utf-8"), module.rpartition(".")[0])
        - DOORS.get(module, set())
        for each in STEPS.values()
        for module in each.modules
    }
    assert upward_arrows(STEPS.values(), imports) == []


def test_a_room_beside_the_ladder_knows_no_notebook() -> None:
    """DESIGN: rooms lean on the ladder; that it never leans on them is the test above"""
    for each in ROOMS.values():
        for module in each.modules:
            names = imported(file_of(module).read_text(encoding="utf-8"))
            assert not {name for name in names if within(name, NOTEBOOK_ROOMS)}, module


@pytest.mark.parametrize(
    "source",
    [
        "import mini_harness.policy",
        "from mini_harness.policy import Rule",
        "from mini_harness import policy",
        "from . import policy",
        "from .policy import Rule",
        "def late():\n    from mini_harness.policy import Rule",
        "class A:\n    def late(self):\n        import mini_harness.policy as p",
        "import importlib\nimportlib.import_module('mini_harness.policy')",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import mini_harness.policy",
        "import mini_harness.views.panel",
        "from mini_harness.course.story import GOAL",
        "from mini_harness.models.anthropic import AnthropicModel",
        "from mini_harness import AnthropicModel",
        "from mini_harness.cli import main",
        "from mini_harness.tools import shell",
    ],
)
def test_an_upward_arrow_is_seen_wherever_it_stands(source: str) -> None:
    """DESIGN: the test that reads the imports fails on an upward arrow"""
    imports = {
        "mini_harness.loop": imported(source, "mini_harness"),
        "mini_harness.policy": imported("from mini_harness.loop import Harness"),
    }
    assert upward_arrows(LADDER, imports)


@pytest.mark.parametrize(
    "source",
    [
        "import json, pydantic",
        "if TYPE_CHECKING:\n    from mini_harness.policy import Rule",
        "if typing.TYPE_CHECKING:\n    import mini_harness.policy",
        "from mini_harness.loop import Harness",
    ],
)
def test_what_is_no_upward_arrow_is_let_through(source: str) -> None:
    imports = {"mini_harness.loop": imported(source), "mini_harness.policy": set[str]()}
    assert upward_arrows(LADDER, imports) == []


def test_only_views_and_course_know_notebooks() -> None:
    """DESIGN: nothing outside knows that notebooks exist"""
    rooms = {PACKAGE / "views", PACKAGE / "course"}
    files = [path for path in PACKAGE.rglob("*.py") if not rooms & set(path.parents)]
    assert len(files) > 20
    for path in files:
        names = imported(path.read_text(encoding="utf-8"))
        assert not {name for name in names if within(name, NOTEBOOK)}, path.name


def definitions(module: str) -> set[str]:
    """The names that a module's own text defines at its top level."""
    found: set[str] = set()
    for node in ast.parse(file_of(module).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_defined_where_the_registry_says(module: str) -> None:
    """DESIGN, rooms: names are public in one place"""
    assert file_of(module).is_file()
    assert set(MODULES[module]) <= definitions(module)
    home = importlib.import_module(module)
    for name in MODULES[module]:
        assert getattr(mini_harness, name) is getattr(home, name)


def test_no_name_is_public_twice_and_none_is_missing_from_the_package() -> None:
    names = [name for names in MODULES.values() for name in names]
    assert len(names) == len(set(names))
    assert set(mini_harness.__all__) == {"STEPS", "step", *names}
    assert dir(mini_harness) == sorted(mini_harness.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Workflow'"):
        mini_harness.Workflow  # noqa: B018


def test_what_type_checkers_read_agrees_with_the_registry() -> None:
    """DESIGN, rooms: the public names, imported lazily"""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    read = {
        (alias.asname, node.module)
        for block in tree.body
        if is_for_types_only(block)
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    assert read == {(name, module) for module, names in MODULES.items() for name in names}


def test_importing_the_package_loads_none_of_its_heavy_parts() -> None:
    """DESIGN: neither Jupyter, matplotlib nor a vendor SDK"""
    code = "import mini_harness, sys; print(*sorted(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, encoding="utf-8"
    )
    loaded = set(done.stdout.split())
    assert "mini_harness" in loaded
    assert not loaded & {*NOTEBOOK, "anthropic", "openai", "jupyterlab", "pydantic", "nbval"}


def test_the_steps_are_those_of_the_ladder_and_in_its_order() -> None:
    """A28"""
    ladder = ["v0", "v1", "v2", "v3", "v4", "v5", "v6"]
    assert list(STEPS) == ladder[: len(STEPS)]
    assert all(each.name == name for name, each in STEPS.items())


def test_a_step_names_its_modules_and_all_their_public_names() -> None:
    """DESIGN: step("v2") gives the harness as it stands at that step"""
    first = step("v0")
    assert (first.name, first.title) == ("v0", "Loop and tool")
    assert "mini_harness.loop" in first.modules
    assert {"Harness", "ToolRegistry", "Run", "tool"} <= set(first.public_names)
    assert len(first.public_names) == sum(len(names) for names in first.adds.values())
    with pytest.raises(TypeError):
        first.adds["mini_harness.more"] = ()  # type: ignore[index]
    with pytest.raises(TypeError):
        STEPS["v9"] = first  # type: ignore[index]


@pytest.mark.parametrize("name", ["v9", "", "V0", "0"])
def test_an_unknown_step_is_answered_with_those_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=rf"There is no step '{name}'\. The steps are: v0"):
        step(name)


def test_the_first_step_has_a_loop_and_tools_and_nothing_that_comes_later() -> None:
    """A30: no memory, no multi-agent, no workflow; no policy, trace or stop condition yet"""
    words = ("memory", "agent", "workflow", "policy", "trace", "maxsteps", "budget", "session")
    names = [*step("v0").public_names, *step("v0").modules]
    assert not [(w, n) for w, n in itertools.product(words, names) if w in n.lower()]
    assert {"View", "Model", "Harness", "Tool"} <= set(names)
    assert step("v0").layers == step("v0").sinks == ()


def test_the_loop_is_short_enough_to_be_read_at_once() -> None:
    """DESIGN: at most 120 lines with docstrings"""
    text = file_of("mini_harness.loop").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_LOOP

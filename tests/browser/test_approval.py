"""Approval in a real JupyterLab: by mouse, by key, twice, too late, after a reload, not at all."""

import re
from itertools import count

import nbformat
import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.browser.conftest import Lab
from tests.browser.hands import SLOW, code_cell, expect_idle, menu, run, shot, write

pytestmark = pytest.mark.browser

SETUP = """
from mini_harness import Harness, Policy, ScriptedModel, Trace, VirtualClock, tool
from mini_harness.views import ApprovalPanel, ask_here

deployed = []

@tool
def deploy(build: str) -> str:
    "Deploy a build."
    deployed.append(build)
    return f"{build} is live"

def farm(*builds, approver=None):
    calls = [{"type": "tool", "name": "deploy", "arguments": {"build": b}} for b in builds]
    model = ScriptedModel([*calls, {"type": "final", "output": "all done"}])
    trace = Trace()
    policy = Policy(approver=approver)
    return trace, Harness(model, [deploy], layers=[policy], sinks=[trace], clock=VirtualClock())
"""
TALL: ViewportSize = {"width": 1280, "height": 18_000}
"""JupyterLab keeps only the cells near the window: in this one, all."""

USUAL: ViewportSize = {"width": 1280, "height": 1_600}
PAUSE = 'trace, harness = farm("b-1")\nrun = await harness.run("deploy")'
PANEL = "ApprovalPanel(harness, run)"
DESK = "desk.ipynb"
AFTER = 'print(run); print("deployed:", deployed)'
_number = count(1)


def opened(page: Page, lab: Lab, *cells: str) -> None:
    """A notebook of these cells, open, with a kernel that is ready."""
    name = f"scratch-{next(_number)}.ipynb"
    put(lab, name, *cells)
    show(page, lab, name)


def put(lab: Lab, name: str, *cells: str) -> None:
    """Write a notebook of these cells into the workspace."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, lab.workspace / name)


def show(page: Page, lab: Lab, name: str) -> None:
    """Open a notebook of the workspace, and wait for its kernel."""
    page.goto(re.sub(r"/lab\S*\?", f"/lab/tree/{name}?reset&", lab.address))
    expect(page.locator(".jp-Notebook .jp-CodeCell").first).to_be_visible(timeout=SLOW)
    expect_idle(page)


def cell(page: Page, number: int) -> Locator:
    return page.locator(".jp-Notebook .jp-CodeCell").nth(number)


def paused(page: Page, lab: Lab, *builds: str) -> Locator:
    """A notebook whose run waits for an answer; its third cell, which shows the panel.

    A notebook that is open still is used again: its first cell forgets everything.
    """
    pause = PAUSE.replace('"b-1"', ", ".join(map(repr, builds)))
    if DESK not in page.url:
        put(lab, DESK, SETUP, pause, PANEL, AFTER)
        show(page, lab, DESK)
    else:
        write(page, cell(page, 1), pause)
    for number in range(3):
        run(page, cell(page, number))
    expect(cell(page, 2)).to_contain_text("May deploy run?")
    return cell(page, 2)


def button(where: Locator, name: str) -> Locator:
    return where.get_by_role("button", name=name, exact=True)


def said(page: Page, source: str = AFTER) -> Locator:
    """What the last cell prints when it is run with this source."""
    last = cell(page, 3)
    write(page, last, source)
    run(page, last)
    return last.locator(".jp-OutputArea-output")


def test_a_click_on_approve_runs_the_tool_and_the_timeline_is_drawn(page: Page, lab: Lab) -> None:
    panel = paused(page, lab, "b-1")
    shot(page, "approval-asked")
    button(panel, "Approve").click()
    expect(panel).to_contain_text("run-1 is completed: all done")
    shot(page, "approval-approved")
    expect(said(page)).to_contain_text("deployed: ['b-1']")
    drawn = said(page, "print(trace.table())\ntrace.timeline()")
    expect(drawn.locator("img")).to_be_visible()
    expect(drawn.first).to_contain_text("approval")
    shot(page, "approval-timeline")


def test_deny_edited_and_always_do_what_they_say(page: Page, lab: Lab) -> None:
    panel = paused(page, lab, "b-1", "b-2", "b-3", "b-3")
    panel.get_by_label("Reason").fill("It is Friday.")
    button(panel, "Deny").click()
    expect(panel).to_contain_text("build: b-2")
    box = panel.get_by_label("Arguments")
    box.fill('{"build": 7}')
    button(panel, "Approve").click()
    expect(panel).to_contain_text("You changed the arguments")
    button(panel, "Approve edited").click()
    expect(panel).to_contain_text("Your arguments can't run")
    shot(page, "approval-bad-edit")
    box.fill('{"build": "b-2-mended"}')
    button(panel, "Approve edited").click()
    expect(panel).to_contain_text("build: b-3")
    button(panel, "Always").click()
    expect(panel).to_contain_text("run-1 is completed: all done")
    expect(said(page)).to_contain_text("deployed: ['b-2-mended', 'b-3', 'b-3']")
    told = said(page, "print(run.history.messages[2]['tool_result'])")
    expect(told).to_contain_text("A person said no. It is Friday.")


def test_the_keyboard_is_enough(page: Page, lab: Lab) -> None:
    panel = paused(page, lab, "b-1")
    page.keyboard.press("Escape")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Approve":
            break
    page.keyboard.press("Enter")
    expect(panel).to_contain_text("run-1 is completed: all done")
    expect(said(page)).to_contain_text("deployed: ['b-1']")


def test_two_clicks_are_one_answer(page: Page, lab: Lab) -> None:
    """report N02"""
    panel = paused(page, lab, "b-1", "b-2")
    button(panel, "Approve").dblclick()
    expect(panel).to_contain_text("build: b-2")
    expect(said(page)).to_contain_text("deployed: ['b-1']")


def test_a_panel_answers_nothing_but_its_own_question(page: Page, lab: Lab) -> None:
    """report N02: two open questions, answered in reverse order; a click that comes too late"""
    first = paused(page, lab, "b-1")
    second = 'other = farm("b-2")[1]\nrun2 = await other.run("deploy")\n'
    expect(said(page, second + "ApprovalPanel(other, run2)")).to_contain_text("build: b-2")
    button(cell(page, 3), "Approve").click()
    expect(cell(page, 3)).to_contain_text("is completed")
    expect(first).to_contain_text("Waiting for you")
    expect(said(page, "run.deny()\nprint(await harness.resume(run))")).to_contain_text("completed")
    button(first, "Approve").click()
    expect(first).to_contain_text("Nothing was done. run-1 isn't waiting for an approval")
    expect(said(page)).to_contain_text("deployed: ['b-2']")


def test_a_question_survives_a_reload_of_the_page(page: Page, lab: Lab) -> None:
    paused(page, lab, "b-1")
    page.keyboard.press("Control+s")
    expect(page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)
    page.reload()
    expect(cell(page, 0)).to_be_visible(timeout=SLOW)
    expect_idle(page)
    button(cell(page, 2), "Approve").click(timeout=SLOW)
    expect(cell(page, 2)).to_contain_text("run-1 is completed: all done")
    expect(said(page)).to_contain_text("deployed: ['b-1']")


def test_the_stop_button_leaves_a_paused_run_as_it_is(page: Page, lab: Lab) -> None:
    panel = paused(page, lab, "b-1")
    menu(page, "Kernel", "Interrupt Kernel")
    button(panel, "Approve").click()
    expect(panel).to_contain_text("run-1 is completed: all done")
    expect(said(page)).to_contain_text("deployed: ['b-1']")


def test_run_all_goes_past_an_open_question_and_the_next_cell_says_what_waits(
    page: Page, lab: Lab
) -> None:
    """report N04"""
    opened(page, lab, SETUP, PAUSE, PANEL, AFTER)
    menu(page, "Run", "Run All Cells")
    output = cell(page, 3).locator(".jp-OutputArea-output")
    expect(output).to_contain_text("deploy waits for your answer", timeout=SLOW)
    expect(output).to_contain_text("deployed: []")
    shot(page, "approval-run-all")
    button(cell(page, 2), "Approve").click()
    expect(cell(page, 2)).to_contain_text("is completed")
    expect(said(page)).to_contain_text("run-1 is completed: all done")


WAITING = 'trace, harness = farm("b-1", approver=ask_here)\nrun = await harness.run("deploy")'


def test_a_cell_can_wait_for_the_click(page: Page, lab: Lab) -> None:
    opened(page, lab, SETUP, WAITING, "0", AFTER)
    menu(page, "Run", "Run All Cells")
    button(cell(page, 1), "Approve").click(timeout=SLOW)
    after = cell(page, 3).locator(".jp-OutputArea-output")
    expect(after).to_contain_text("deployed: ['b-1']", timeout=SLOW)
    expect(cell(page, 1)).to_contain_text('You approved deploy {"build":"b-1"}')
    shot(page, "approval-waiting-cell")


QUESTION = """
from mini_harness import AskUser
from mini_harness.views import answer_here

asks = [
    {"type": "tool", "name": "ask_user", "arguments": {"question": q, "choices": c}}
    for q, c in (("Which <build>?", ["b-1", "b-2"]), ("Why?", []))
]
model = ScriptedModel([*asks, {"type": "final", "output": "done"}])
asked = await Harness(model, [AskUser(answer_here)]).run("ask")
print([m["tool_result"] for m in asked.history.messages if m["role"] == "tool"])
"""


def test_the_model_asks_and_a_person_answers_by_click_and_by_keyboard(page: Page, lab: Lab) -> None:
    """B03: ask_user"""
    opened(page, lab, SETUP, QUESTION)
    menu(page, "Run", "Run All Cells")
    asking = cell(page, 1)
    expect(asking).to_contain_text("Which <build>?", timeout=SLOW)
    button(asking, "b-2").click(timeout=SLOW)
    expect(asking).to_contain_text("You answered: b-2")
    fields = asking.locator("input[type=text]")
    # A click stays with the element that it found first, though another one is the last by now.
    expect(fields).to_have_count(2, timeout=SLOW)
    expect(asking.locator(".jp-OutputArea")).to_contain_text("Why?")
    fields.last.click(timeout=SLOW)
    page.keyboard.insert_text("because")
    page.keyboard.press("Tab")
    shot(page, "question")
    page.keyboard.press("Enter")
    expect(asking).to_contain_text("['b-2', 'because']", timeout=SLOW)


def test_the_stop_button_ends_a_waiting_cell_and_nothing_ran(page: Page, lab: Lab) -> None:
    opened(page, lab, SETUP, WAITING, "0", AFTER)
    menu(page, "Run", "Run All Cells")
    expect(button(cell(page, 1), "Approve")).to_be_enabled(timeout=SLOW)
    menu(page, "Kernel", "Interrupt Kernel")
    expect(cell(page, 1)).to_contain_text("CancelledError", timeout=SLOW)
    expect(cell(page, 1)).to_contain_text("Stopped.")
    shot(page, "approval-stopped")
    # Until then, what is run next is aborted as if it had been waiting behind the stopped cell.
    expect_idle(page)
    expect(cell(page, 3).locator(".jp-OutputArea-output")).to_have_count(0)
    expect(said(page, "print(deployed, trace.events[-1])")).to_contain_text("[]")
    expect(said(page, "print(trace.events[-1])")).to_contain_text("cancelled")


def test_the_lesson_runs_to_its_approval_and_clicks_go_on(page: Page, lab: Lab) -> None:
    page.set_viewport_size(TALL)
    try:
        show(page, lab, "v1_policy_and_trace.ipynb")
        menu(page, "Edit", "Clear Outputs of All Cells")
        menu(page, "Run", "Run All Cells")
        panel = code_cell(page, "ApprovalPanel(harness, run)")
        after = code_cell(page, "decided.timeline()")
        expect(after).to_contain_text("deploy_prod waits for your answer", timeout=SLOW)
        expect(code_cell(page, "played.table()")).to_contain_text("events", timeout=SLOW)
        expect(page.locator("[data-mime-type='application/vnd.jupyter.error']")).to_have_count(0)
        expect(page.locator("[data-mime-type*='stderr']")).to_have_count(0)
        button(panel, "Approve").click()
        expect(panel).to_contain_text("You approved deploy_prod")
        button(panel, "Always").click()
        expect(panel).to_contain_text("is completed")
        shot(panel, "approval-lesson-panel")
        run(page, after)
        expect(after).to_contain_text("is completed")
        expect(after.locator("img")).to_be_visible()
        shot(after, "approval-lesson-after")
    finally:
        page.set_viewport_size(USUAL)

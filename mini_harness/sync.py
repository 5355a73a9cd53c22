"""Between code that awaits and code that can't: each called from the other."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from mini_harness.clock import real_work

T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of ``coroutine``, or raise what it raises.

    In a plain script this is ``asyncio.run``. Where an event loop is running already, as in a
    notebook cell, the coroutine gets a thread and a loop of its own, with the caller's context
    variables; the caller's loop waits meanwhile. What interrupts the waiting cancels the coroutine.
    In a notebook, ``await`` is the better way.
    """
    return _in_thread(coroutine) if _loop_is_running() else asyncio.run(coroutine)


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    result: list[T] = []
    errors: list[BaseException] = []
    tasks: list[asyncio.Task[Any]] = []
    finished = threading.Event()

    async def main() -> T:
        tasks.extend(asyncio.all_tasks())
        return await coroutine

    def work() -> None:
        try:
            result.append(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001 - handed to the caller below, whatever it is
            errors.append(error)
        finally:
            finished.set()

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    try:
        thread.start()
        # Not join(): on Python 3.11 and 3.12 an interrupted join takes the thread for ended. Not
        # one long wait: a signal that comes just before it begins is seen only when it ends.
        while not finished.wait(0.2):
            pass
    except BaseException:
        for task in tasks:
            with suppress(RuntimeError):  # It has just ended by itself.
                task.get_loop().call_soon_threadsafe(task.cancel)
            finished.wait()
        raise
    thread.join()
    if errors:
        raise errors[0]
    return result[0]


async def in_own_thread(
    function: Callable[..., T],
    late: Callable[[Future[T]], object] | None = None,
    /,
    **arguments: Any,
) -> T:
    """Call a function that waits, in a thread of its own, and return what it gives.

    A thread can't be killed: if nobody awaits it any more, the function goes on. ``late`` is then
    called with what it gives, in the event loop that had awaited it, if there still is one; else
    that is dropped. It keeps no other function waiting, and the program's end doesn't wait for it.
    """
    result: Future[T] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            value = context.run(function, **arguments)
        except StopIteration as error:
            # No future takes this one: it would end whoever awaits as if it had returned.
            result.set_exception(RuntimeError(f"{function!r} raised {error!r}"))
        except BaseException as error:  # noqa: BLE001 - whoever awaits the result raises it
            result.set_exception(error)
        else:
            result.set_result(value)

    # Running, it can't be cancelled from the waiting side: its thread may always deliver.
    result.set_running_or_notify_cancel()
    threading.Thread(target=work, daemon=True).start()
    awaited = real_work(asyncio.wrap_future(result))
    try:
        return await awaited
    except asyncio.CancelledError as error:
        raised = awaited.done() and not awaited.cancelled() and awaited.exception() is error
        if late is not None and not raised:
            loop = asyncio.get_running_loop()
            result.add_done_callback(partial(_hand_over, loop, late))
        raise


def _hand_over(
    loop: asyncio.AbstractEventLoop, late: Callable[[Future[T]], object], result: Future[T]
) -> None:
    with suppress(RuntimeError):  # The loop is closed, so nobody can be told any more.
        loop.call_soon_threadsafe(late, result)

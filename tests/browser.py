"""A real Chromium, for tests marked `browser`. Nothing is downloaded: the program is the system's."""

import asyncio
import atexit
import functools
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

from tests.database_servers import program
from tests.pace import slowly
from tests.support import CHROMIUM


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of this process, without a window and with nothing open. Its event loop is the running one only
    as long as the context lasts, since async tests can't run beside it."""
    browser, loop = _started()
    with _running(loop):
        yield browser
        for context in browser.contexts:
            context.close()


@functools.cache
def _started() -> tuple[Browser, asyncio.AbstractEventLoop]:
    expect.set_options(timeout=slowly(5_000))
    playwright = sync_playwright().start()
    loop = asyncio.get_running_loop()
    try:
        browser = playwright.chromium.launch(executable_path=program(CHROMIUM))
    except BaseException:
        playwright.stop()
        raise

    @atexit.register
    def stop() -> None:
        with _running(loop):
            browser.close()
            playwright.stop()

    return browser, loop


@contextmanager
def _running(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(None)

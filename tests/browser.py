"""A real Chromium, for tests marked `browser`. Nothing is downloaded: the program is the system's."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from tests.database_servers import program
from tests.support import CHROMIUM


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window, as long as the context lasts."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(CHROMIUM))
        try:
            yield browser
        finally:
            browser.close()

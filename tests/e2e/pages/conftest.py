"""A browser that notes what pages try, viewers as processes, and the runs that they show."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request

from tests.browser import chromium
from tests.e2e.proctor import begin, ended, exits
from tests.support import made_once

ANSWERED = "Failed to load resource: the server responded with a status of"
"""What the console says of a page that our server answers with an error."""


@dataclass
class Watched:
    """A page of a browser, and what it did that can be seen from outside."""

    page: Page
    origin: str
    dialogs: list[str] = field(default_factory=list)
    strayed: list[str] = field(default_factory=list)
    """Addresses of other origins that something was asked of."""
    said: list[str] = field(default_factory=list)
    """Messages of the console, among them violations of the content security policy, and errors of scripts."""

    def trouble(self) -> list[str]:
        """All that a page of ours must never cause; empty where all is well."""
        return [*self.dialogs, *self.strayed, *self.said]

    def forget(self) -> None:
        """As if it had done nothing yet."""
        for noted in (self.dialogs, self.strayed, self.said):
            noted.clear()


@contextmanager
def watched(context: BrowserContext, origin: str) -> Iterator[Watched]:
    """A page of a context whose doings are noted; `origin` is the server's."""
    found = Watched(context.new_page(), origin)

    def note(request: Request) -> None:
        if not request.url.startswith(f"{origin}/"):
            found.strayed.append(request.url)

    def hear(message: ConsoleMessage) -> None:
        if not (message.text.startswith(ANSWERED) and message.location["url"].startswith(f"{origin}/")):
            found.said.append(message.text)

    def dismiss(dialog: Dialog) -> None:
        found.dialogs.append(dialog.message)
        dialog.dismiss()

    context.on("request", note)
    context.on("dialog", dismiss)
    context.on("console", hear)
    context.on("weberror", lambda error: found.said.append(str(error.error)))
    context.on("page", lambda page: found.strayed.append(f"a new window: {page.url}"))
    yield found
    found.page.close()


@contextmanager
def viewer(folder: Path, *arguments: str, **variables: str) -> Iterator[str]:
    """The address of `proctor view` on the runs of a folder."""
    with ended():
        process = begin("view", "--output", str(folder), "--port", "0", *arguments, cwd=folder, **variables)
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http"), process.communicate()
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of `proctor demo`: one sample of each of the ten environments, by three agents."""

    def play(folder: Path) -> None:
        exits(0, "demo", "--limit", "1", "-q", cwd=folder)

    return made_once(tmp_path_factory, "demo", play) / "runs"

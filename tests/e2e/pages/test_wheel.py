"""The viewer as it is installed: from a wheel, on a machine without network."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser

from tests.e2e.pages.addresses import ERRORS, PAGES, QUIET, Named
from tests.e2e.pages.conftest import viewer, watched
from tests.support import ROOT, built_packages

OFFLINE = """
import sys

def refuse(event, given):
    if event == "socket.connect" and not isinstance(given[1], str) and not given[1][0].startswith("127."):
        raise OSError(f"no network: {given[1]}")

sys.addaudithook(refuse)
"""
"""Refuses connections to all but this machine."""
PACKAGES = ("agent_server", "environments", "eval_client", "proctor", "task_server")
FOLDERS = ("eval_client/view/templates", "eval_client/view/assets")
MARK = "/* of the installed one */"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    (built,) = built_packages(tmp_path_factory).glob("proctor-*.whl")
    return zipfile.ZipFile(built)


@pytest.fixture(scope="module")
def origin(wheel: zipfile.ZipFile, demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a viewer that runs from the wheel's files alone."""
    installed = tmp_path_factory.mktemp("installed")
    wheel.extractall(installed)
    (installed / "sitecustomize.py").write_text(OFFLINE)
    with (installed / FOLDERS[1] / "view.css").open("a") as stylesheet:
        stylesheet.write(MARK)
    with viewer(demo, PYTHONPATH=str(installed)) as address:
        yield address


def test_the_wheel_holds_every_file_of_the_packages(wheel: zipfile.ZipFile) -> None:
    held = set(wheel.namelist())
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.*") if "__pycache__" not in path.parts]
    assert [path for path in files if path.is_file() and path.relative_to(ROOT).as_posix() not in held] == []
    for folder in FOLDERS:
        paths = list((ROOT / folder).iterdir())
        assert len(paths) >= 2
        for path in paths:
            assert wheel.read(f"{folder}/{path.name}") == path.read_bytes()


@pytest.mark.browser
def test_it_works_offline_and_asks_no_other_host(browser: Browser, origin: str, demo: Path) -> None:
    (run,) = (folder.name for folder in demo.iterdir())
    names = Named(run, "db", "insert-00000")
    with browser.new_context() as context, watched(context, origin) as shown:
        for address in (*PAGES, *QUIET, *ERRORS):
            answer = shown.page.goto(origin + names.fill(address))
            assert answer is not None
            assert answer.ok == (address not in ERRORS), address
        assert shown.trouble() == []
        style = shown.page.locator("link[rel=stylesheet]").get_attribute("href")
    assert MARK in httpx.get(f"{origin}{style}").text

"""The plots in the viewer: their marks lead to the trials behind them."""

import re
import shutil
from html import unescape
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import httpx
import pytest

from eval_client.report.pair_report import VALIDITY
from eval_client.report.plots.pairs import reasons
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.store import Store
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.rendering import assets
from eval_client.view.runs import FolderRuns
from eval_client.view.saved import report_page
from tests.browser import chromium
from tests.unit.eval_client.report.pairs import pair
from tests.unit.eval_client.view.conftest import ORIGIN, Client
from tests.unit.eval_client.view.played import served
from tests.unit.eval_client.view.test_pages import text_of
from tests.unit.eval_client.view.told import told_run

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def told(tmp_path: Path, made: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `told` is a copy of."""
    folder = tmp_path_factory.mktemp("told")
    told_run(folder).engine.dispose()
    return folder


@pytest.fixture
def viewer(told: Path) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(build_app(FolderRuns(told), ViewAccess()))
    return httpx.AsyncClient(transport=transport, base_url=ORIGIN)


def saved(folder: Path) -> Path:
    """The file of the run's overview."""
    store = Store(connect(sqlite_url(folder / "told")), "told")
    (folder / "told.html").write_text(report_page(store, samples=True, trials=(0,)), encoding="utf-8")
    return folder / "told.html"


def marks(svg: str) -> dict[str, str]:
    """title -> address of each mark that is a link; every mark has to be one."""
    root = ElementTree.fromstring(svg)
    linked = root.findall(f".//{SVG}a[@class='mark']")
    assert not root.findall(f".//{SVG}g[@class='mark']")
    return {mark.findtext(f"{SVG}title", ""): mark.attrib["href"] for mark in linked}


async def count(viewer: httpx.AsyncClient, address: str) -> int:
    """How many trials an address of the table selects."""
    total = (await viewer.get(f"/api/v1{address}")).json()["total"]
    assert isinstance(total, int)
    return total


async def test_every_mark_leads_to_the_trials_that_it_stands_for(viewer: httpx.AsyncClient) -> None:
    async with viewer:
        page = await text_of(viewer, "/runs/told")
        found: dict[str, str] = {}
        for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
            found |= marks(svg)
        assert len(found) > 8
        for title, address in found.items():
            pair = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
            assert pair["agent"] in title
            assert pair["task"] in ("os", "db")
            assert await count(viewer, address) > 0, title
        shares = {title: address for title, address in found.items() if title.startswith("gpt, os: ") and "%" in title}
        assert len(shares) >= 2
        for title, address in shares.items():
            share = re.search(r"([\d.]+)%", title)
            if "reason=" in address and share is not None:
                assert await count(viewer, address) == round(float(share[1]) * 6 / 100), title
    assert page.count("<summary>The figures</summary>") == page.count("<svg")


@pytest.mark.parametrize(("name", "task"), [("reasons", ""), ("cost", "os"), ("cost", "db"), ("matrix", "")])
async def test_a_plot_alone_is_the_one_on_the_page(viewer: httpx.AsyncClient, name: str, task: str) -> None:
    async with viewer:
        page = await text_of(viewer, "/runs/told")
        answer = await viewer.get(f"/api/v1/plots/{name}.svg?run=told&task={task}")
        sheet = re.search(r'<\?xml-stylesheet type="text/css" href="([^"]+)"', answer.text)
        assert sheet is not None
        assert ".plot .front" in await text_of(viewer, sheet[1])
    assert answer.headers["content-type"] == "image/svg+xml"
    assert (answer.text.partition("?>\n")[2] in page) == (name != "matrix"), "the page has the scores as a table"
    assert marks(answer.text.partition("?>\n")[2])


async def test_the_plot_of_a_comparison_alone(viewer: httpx.AsyncClient) -> None:
    async with viewer:
        answer = await viewer.get("/api/v1/plots/differences.svg?a=told:gpt&b=told:naive")
        page = await text_of(viewer, "/compare?a=told:gpt&b=told:naive")
        refused = await viewer.get("/api/v1/plots/differences.svg?a=told:gpt&b=told:nobody")
    assert answer.text.count("<title>") == 2
    assert all(title in unescape(page) for title in re.findall("<title>(.*?)</title>", unescape(answer.text)))
    assert refused.status_code == 400


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("pie.svg?run=told", 404),
        ("matrix.svg", 400),
        ("matrix.svg?run=none", 404),
        ("cost.svg?run=told&task=none", 404),
        ("differences.svg?a=told:gpt", 400),
    ],
)
async def test_a_plot_that_is_not_there_is_refused(viewer: httpx.AsyncClient, address: str, status: int) -> None:
    async with viewer:
        answer = await viewer.get(f"/api/v1/plots/{address}")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


async def test_hostile_names_and_pairs_without_scores_are_drawn_too(client: Client) -> None:
    async with client() as viewer:
        page = await text_of(viewer, "/runs/first")
        for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
            ElementTree.fromstring(svg)
        unscored = await viewer.get("/api/v1/plots/cost.svg?run=first")
    assert "NaN" not in page
    assert unscored.status_code in (200, 404)


async def test_a_run_without_a_score_has_no_plot_of_costs(folder: Path, client: Client) -> None:
    store = Store(connect(sqlite_url(folder / "first")), "first")
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE proctor_trial SET score = NULL, reason = NULL")
    async with client() as viewer:
        page = await text_of(viewer, "/runs/first")
        missing = await viewer.get("/api/v1/plots/cost.svg?run=first")
    assert "tokens per trial and" not in page
    assert (missing.status_code, "nothing to draw yet" in missing.text) == (404, True)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_reason_has_a_colour_of_its_own_that_its_share_is_read_on(scheme: Literal["light", "dark"]) -> None:
    drawn = reasons([pair(validity=dict.fromkeys(VALIDITY, 1 / len(VALIDITY)))]).svg
    with chromium() as browser:
        page = browser.new_context(color_scheme=scheme).new_page()
        page.set_content(f"<style>{assets()['view.css'].content.decode()}</style>{drawn}")
        fills = page.evaluate("[...document.querySelectorAll('rect.reason')].map(each => getComputedStyle(each).fill)")
        text = page.evaluate("getComputedStyle(document.querySelector('.share')).fill")
    assert len(set(fills)) == len(VALIDITY)
    for fill in fills:
        dark, light = sorted((luminance(fill), luminance(text)))
        assert (light + 0.05) / (dark + 0.05) > 4.5, fill


def luminance(colour: str) -> float:
    """The relative luminance of `rgb(r, g, b)`, by WCAG 2."""
    parts = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.browser
def test_a_browser_draws_plots_with_their_colours_and_without_a_violation(told: Path) -> None:
    said: list[str] = []
    with served(told) as address, chromium() as browser:
        page = browser.new_context(color_scheme="dark").new_page()
        page.on("console", lambda message: said.append(message.text))
        page.goto(f"{address}/api/v1/plots/cost.svg?run=told&task=os")
        alone = page.evaluate("getComputedStyle(document.querySelector('.dot')).stroke")
        page.goto(f"{address}/runs/told")
        within = page.evaluate("getComputedStyle(document.querySelector('.dot')).stroke")
        page.locator("figure a.mark").first.click()
        page.wait_for_url(re.compile(r"/runs/told/trials\?agent=gpt&task="))
        page.goto(saved(told).as_uri())
        in_file = page.evaluate("getComputedStyle(document.querySelector('.dot')).stroke")
    assert alone == within == in_file == "rgb(132, 182, 247)"
    assert [text for text in said if "Content Security Policy" in text] == []

"""Two trials side by side."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import FolderRuns
from tests.browser import chromium
from tests.unit.eval_client.view.conftest import ORIGIN, Client
from tests.unit.eval_client.view.played import Said, played_run, served
from tests.unit.eval_client.view.test_pages import text_of

SAME: Said = [(f"question {number}", f"answer {number}") for number in range(1, 61)]
OTHER: Said = [*SAME[:54], ("question 55", "another"), ("a trap", "no"), ("question 57", "yes")]
"""Shown the same up to turn 55, in whose answer it differs, and once more in turn 57, its last."""


@pytest.fixture
async def pair(tmp_path: Path) -> Path:
    """A run of three agents: trials 0 and 1 differ from turn 56 on, 0 and 2 in nothing."""
    await played_run(tmp_path, "pair", {"one": SAME, "other": OTHER, "again": SAME})
    return tmp_path


def viewer_of(folder: Path) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(build_app(FolderRuns(folder), ViewAccess()))
    return httpx.AsyncClient(transport=transport, base_url=ORIGIN)


def turns_of(page: str) -> dict[int, str]:
    _, *texts = re.split(r'<section class="turn pair[^"]*" id="turn-', page)
    return {int(text.partition('"')[0]): text for text in texts}


async def test_it_opens_at_the_first_turn_whose_observations_differ(pair: Path) -> None:
    async with viewer_of(pair) as viewer:
        answer = await viewer.get("/runs/pair/side?a=0&b=1")
        assert (answer.status_code, answer.headers["location"]) == (307, "/runs/pair/side?a=0&b=1&turn=56#turn-56")
        page = await text_of(viewer, "/runs/pair/side?a=0&b=1&turn=56")
    turns = turns_of(page)
    assert list(turns) == list(range(51, 61))
    assert [number for number, text in turns.items() if "first difference" in text] == [56]
    assert re.findall(r'class="turn pair first" id="turn-(\d+)"', page) == ["56"]
    assert "in what they were shown is turn 56" in page


async def test_the_same_observation_is_shown_once_and_unlike_ones_twice(pair: Path) -> None:
    async with viewer_of(pair) as viewer:
        turns = turns_of(await text_of(viewer, "/runs/pair/side?a=0&b=1&turn=60"))
    assert [turns[number].count(f"question {number}") for number in (51, 55, 56, 57)] == [1, 1, 1, 1]
    assert turns[56].count("a trap") == 1
    assert turns[51].count('<div class="message answer">') == 2
    assert "gave the same answer" in turns[54]
    assert "gave the same answer" not in turns[55]
    assert turns[57].count("question 57") == 1, "also after a difference"
    assert "B other: the trial is over" in turns[58]


async def test_trials_that_were_shown_the_same_open_at_the_last_turn(pair: Path) -> None:
    async with viewer_of(pair) as viewer:
        answer = await viewer.get("/runs/pair/side?a=0&b=2")
        assert answer.headers["location"].endswith("turn=60#turn-60")
        page = await text_of(viewer, "/runs/pair/side?a=0&b=2&turn=60")
    assert "shown the same in every turn" in page
    assert "first difference" not in page


async def test_a_trial_leads_to_one_of_another_agent_beside_it_and_any_can_be_chosen(pair: Path) -> None:
    async with viewer_of(pair) as viewer:
        trial = await text_of(viewer, "/runs/pair/trials/1")
        found = re.search(r'href="(/runs/pair/side[^"]+)" data-key="s"', trial)
        assert found is not None
        answer = await viewer.get(found[1])
        assert answer.headers["location"] == "/runs/pair/side?a=1&b=0&turn=56#turn-56"
        page = await text_of(viewer, "/runs/pair/side?a=1&b=0&turn=56")
    assert re.findall(r'<option value="(\d)" selected', page) == ["1", "0"]
    assert len(re.findall("<option", page)) == 6


async def test_a_trial_names_the_scores_of_the_others_of_its_sample(tmp_path: Path, client: Client) -> None:
    await played_run(tmp_path, "epochs", {"one": SAME[:1], "other": SAME[:2]}, epochs=2)
    async with viewer_of(tmp_path) as viewer:
        line = same_sample(await text_of(viewer, "/runs/epochs/trials/1?agent=one"))
    assert re.sub("<[^>]+>", "", line) == "same sample: one#0 1.000 ⇄, other 0.500 ⇄, other#0 1.000 ⇄"
    ways = [f"/runs/epochs/{way}{other}" for other in (0, 3, 2) for way in ("trials/", "side?a=1&amp;b=")]
    assert re.findall(r'href="([^"]+)"', line) == ways
    assert re.findall(r'aria-label="([^"]+)"', line)[1] == "side by side with other, epoch 1"
    async with client() as viewer:
        line = same_sample(await text_of(viewer, "/runs/first/trials/1"))
    assert re.sub("<[^>]+>", "", line) == "same sample: naive - task_error ⇄, idle - not over yet ⇄"


def same_sample(page: str) -> str:
    found = re.search(r'<p class="ways same">(.*?)</p>', page, re.DOTALL)
    assert found is not None
    return " ".join(found[1].split())


async def test_of_many_trials_of_a_sample_the_rest_is_a_link_away(tmp_path: Path) -> None:
    await played_run(tmp_path, "many", {"one": SAME[:1]}, epochs=20)
    await played_run(tmp_path, "single", {"one": SAME[:1]})
    async with viewer_of(tmp_path) as viewer:
        page = await text_of(viewer, "/runs/many/trials/3")
        assert len(re.findall(r'href="/runs/many/side\?a=3&amp;b=\d+"', page)) == 12
        assert '<a href="/runs/many/sample?task=riddles&amp;sample=s">7 more</a>' in page
        assert "same sample:" not in await text_of(viewer, "/runs/single/trials/0")


async def test_trials_without_turns_can_be_shown_too(client: Client) -> None:
    async with client() as viewer:
        assert "Neither has played a turn" in await text_of(viewer, "/runs/first/side?a=10&b=18")
        page = await text_of(viewer, "/runs/first/side?a=0&b=16&turn=1")
    assert page.count("the trial is over") == 3
    assert re.findall(r'<option value="16" selected', page)


async def test_two_stops_are_no_same_answer(client: Client) -> None:
    async with client() as viewer:
        page = await text_of(viewer, "/runs/first/side?a=1&b=1&turn=1")
    assert "both were shown the same" in page
    assert "gave the same answer" not in page


@pytest.mark.parametrize(
    ("query", "status"), [("a=99&b=0", 404), ("b=0", 404), ("a=0&b=x", 404), ("a=0&b=1&turn=x", 400), ("", 404)]
)
async def test_what_is_not_there_is_refused(client: Client, query: str, status: int) -> None:
    async with client() as viewer:
        await text_of(viewer, f"/runs/first/side?{query}", status)


@pytest.mark.browser
def test_a_browser_opens_it_at_the_first_difference_without_javascript(tmp_path: Path) -> None:
    asyncio.run(played_run(tmp_path, "pair", {"one": SAME, "other": OTHER}))
    with served(tmp_path) as address, chromium() as browser:
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(f"{address}/runs/pair/trials/0")
        page.get_by_role("link", name="side by side", exact=True).click()
        expect(page).to_have_url(f"{address}/runs/pair/side?a=0&b=1&turn=56#turn-56")
        expect(page.locator("#turn-56")).to_be_in_viewport()
        expect(page.locator("#turn-51")).not_to_be_in_viewport()

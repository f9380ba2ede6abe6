"""The pages and the JSON: figures, conversations, addresses, errors, and texts that try to be markup."""

import re
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from eval_client.report.report import report
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.store import Store
from eval_client.store.trials.trajectory import conversation, read_trajectory
from eval_client.view.app import PAGES, SECURITY
from eval_client.view.json_api import ROUTES
from eval_client.view.pages import overview
from eval_client.view.saved import report_page
from tests.unit.eval_client.view.conftest import HOSTILE, SAMPLES, Client, turns

ADDRESSES = (
    "/",
    "/runs/first",
    "/runs/first/tables",
    "/runs/first/trials",
    "/runs/first/live",
    "/api/v1/runs/first/live",
    "/runs/first/trials?sort=-score&size=5&agent=gpt",
    f"/runs/first/trials?text={quote(HOSTILE)}",
    f"/runs/first/trials.csv?sample={quote(HOSTILE)}",
    "/runs/first/trials.jsonl?score=none",
    f"/api/v1/runs/first/trials?text={quote(HOSTILE)}",
    "/runs/first/trials/0",
    "/runs/first/trials/0?earlier=3",
    "/runs/first/trials/0/raw?turn=3&part=answer",
    "/runs/first/trials/8",
    "/runs/first/trials/16",
    f"/runs/first/sample?task=riddles&sample={quote(HOSTILE)}",
    "/api/v1/runs",
    "/api/v1/runs/first",
    "/api/v1/runs/first/trials",
    "/api/v1/runs/first/trials/0",
    "/runs/first/side?a=0&b=1&turn=1",
    "/compare",
    "/compare?a=first:gpt&b=first:idle",
    "/api/v1/plots/matrix.svg?run=first",
    "/api/v1/plots/pie.svg?run=first",
    "/healthz",
    "/runs/none",
    "/api/v1/runs/none",
    "/runs/first/trials?size=x",
    "/runs/first/trials/99",
    "/runs/first/trials/99999999999999999999",
    "/runs/first/trials/0?turn=-1",
    "/nothing",
    "/runs/../../etc/passwd",
)


async def text_of(client: httpx.AsyncClient, address: str, status: int = 200) -> str:
    answer = await client.get(address)
    assert answer.status_code == status, answer.text
    return answer.text


@pytest.mark.parametrize("address", ADDRESSES)
async def test_every_answer_bears_the_headers_and_no_page_holds_script_or_style(client: Client, address: str) -> None:
    async with client() as viewer:
        answer = await viewer.get(address)
    assert answer.status_code in (200, 400, 404, 409)
    assert {name: answer.headers.get(name) for name in SECURITY} == SECURITY
    assert answer.headers["cache-control"] == "no-store"
    if answer.headers["content-type"].startswith("text/html"):
        tags = " ".join(re.findall(r"<[a-z][^>]*>", answer.text))
        tags = re.sub(r'<script type="module" src="/assets/view\.[0-9a-f]{12}\.js">', "", tags)
        assert not re.search(r"<script|<style|\sstyle=|\son[a-z]+=[^=]|javascript:", re.sub(r'"[^"]*"', '""', tags))
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", answer.text)
        assert HOSTILE not in answer.text


async def test_assets_may_be_kept_for_ever_and_are_all_that_a_page_loads(client: Client) -> None:
    async with client() as viewer:
        page = await text_of(viewer, "/")
        loaded = re.findall(r'<(?:link rel="(?:icon|stylesheet)" href|script type="module" src)="([^"]+)"', page)
        assert len(loaded) == 3
        for address in loaded:
            answer = await viewer.get(address)
            assert (answer.status_code, "immutable" in answer.headers["cache-control"]) == (200, True)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", "")


async def test_nothing_but_reading_is_allowed(client: Client) -> None:
    async with client() as viewer:
        for path, _ in (*PAGES, *ROUTES):
            for method in ("POST", "PUT", "DELETE"):
                address = path.format(run="first", trial="0", name="matrix")
                answer = await viewer.request(method, address)
                assert answer.status_code == 405, (method, address)
                assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_overview_has_the_reports_figures(folder: Path, client: Client) -> None:
    made = report(Store(connect(sqlite_url(folder / "first")), "first"))
    async with client() as viewer:
        page = await text_of(viewer, "/runs/first")
        told = (await viewer.get("/api/v1/runs/first")).json()
    added = [{name: pair.pop(name) for name in ("missing", "letters")} for pair in told["pairs"]]
    assert told["pairs"] == made.model_dump(mode="json")["pairs"]
    assert added[1] == {"missing": {"low": 0.0, "high": 1.0}, "letters": None}
    assert told["comparable"] == {"riddles": "the samples are invented"}
    matrix = page.partition("</table>")[0]
    cells = re.findall(r'class="(value|error)"(?: value="([^"]+)")?>(.*?)<', matrix)
    scored = made.pairs[0]
    assert scored.interval is not None
    assert cells == [
        ("value", repr(scored.value), f"{scored.value:.3f}"),
        ("error", "", "[{:.3f}, {:.3f}]".format(*scored.interval)),
        ("value", "", "-"),
        ("value", "", "-"),
    ]
    assert "8 unscored" in page


async def test_the_overview_of_many_pairs_has_the_reports_tables_a_link_away(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client() as viewer:
        tables = await text_of(viewer, "/runs/first/tables")
        assert re.findall(r"<td.*?</td>", tables)
        few = await text_of(viewer, "/runs/first")
        assert set(re.findall(r"<td.*?</td>", tables)) <= set(re.findall(r"<td.*?</td>", few))
        assert 'href="/runs/first/tables"' not in few
    monkeypatch.setattr(overview, "MOST_PAIRS", 2)
    async with client() as viewer:
        many = await text_of(viewer, "/runs/first")
    assert 'href="/runs/first/tables"' in many
    assert "costs of the finished trials" in tables
    assert "costs of the finished trials" not in many


async def test_the_first_page_lists_the_runs_and_leads_to_them(folder: Path, client: Client) -> None:
    (folder / "broken").mkdir()
    (folder / "broken" / "run.sqlite").write_text("this is no database, " * 200)
    async with client() as viewer:
        page = await text_of(viewer, "/")
        assert 'href="/runs/first"' in page
        assert "8/24" in page
        assert "file is not a database" in page
        assert (await viewer.get("/runs/broken")).status_code == 503
        listed = (await viewer.get("/api/v1/runs")).json()
    assert [(each["run"], each["state"]) for each in listed["items"]] == [
        ("first", "finished"),
        ("broken", "unreadable"),
    ]


async def test_a_file_is_byte_for_byte_the_same_after_many_requests(folder: Path, client: Client) -> None:
    before = (folder / "first" / "run.sqlite").read_bytes()
    async with client() as viewer:
        for address in ADDRESSES * 3:
            await viewer.get(address)
    assert (folder / "first" / "run.sqlite").read_bytes() == before


async def test_a_trial_shows_its_attempts_its_score_and_each_turn_as_it_was(client: Client) -> None:
    async with client() as viewer:
        page = await text_of(viewer, "/runs/first/trials/0")
    assert "<strong>lost</strong> on worker-2" in page
    assert "connection refused" in page
    assert "&#34;said&#34;: &#34;7&#34;" in page
    assert "strict" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m\\u202e{{7*7}}" in page
    assert "call <strong>count</strong> c1" in page
    assert "{&#34;what&#34;: " in page, "malformed arguments are shown as the model wrote them"
    assert "I count" in page
    assert page.count("cut this answer at max_tokens") == 1
    assert "The first 4,000 of 30,000 characters" in page
    assert "x" * 4001 not in page


async def test_an_answer_stands_with_how_the_environment_reads_it(client: Client) -> None:
    async with client() as viewer:
        page = await text_of(viewer, "/runs/first/trials/0")
        told = (await viewer.get("/api/v1/runs/first/trials/0")).json()
    shown = [part.partition("</div>")[0] for part in page.split('<div class="message read">')[1:]]
    assert len(shown) == 3
    assert "no question" in shown[0]
    assert re.search(r"<strong>question</strong>.*<pre[^>]*>seven</pre>", shown[1], re.DOTALL)
    assert told["turns"]["items"][1]["reading"] == {"kind": "question", "text": "seven", "problem": None}


async def test_earlier_messages_unfold_to_all_that_was_sent(client: Client) -> None:
    *_, third = conversation(turns())
    async with client() as viewer:
        folded = await text_of(viewer, "/runs/first/trials/0")
        page = await text_of(viewer, "/runs/first/trials/0?earlier=3")
        told = (await viewer.get("/api/v1/runs/first/trials/0?earlier=3")).json()
    assert f"{len(third.earlier)} earlier messages" in folded
    shown = page.partition('id="turn-3"')[2]
    roles = re.findall(r'<div class="message (\w+)', shown)
    assert roles[:-2] == [message.role for message in (*third.earlier, *third.messages)]
    last = told["turns"]["items"][2]
    assert last["earlier_messages"] == [message.model_dump(mode="json") for message in third.earlier]
    assert [(each["earlier"], each["earlier_messages"]) for each in told["turns"]["items"][:2]] == [
        (0, None),
        (3, None),
    ]
    assert (last["finish"], last["world_seconds"]) == ("stop", 0.5)


async def test_a_long_text_is_sent_whole_as_a_file(client: Client) -> None:
    async with client() as viewer:
        answer = await viewer.get("/runs/first/trials/0/raw?turn=3&part=answer")
        missing = await viewer.get("/runs/first/trials/0/raw?turn=3&part=nothing")
    assert answer.text == "x" * 30_000
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert missing.status_code == 404


async def test_a_trial_without_score_says_why_and_one_not_played_says_so(client: Client) -> None:
    async with client() as viewer:
        assert "the sandbox broke" in await text_of(viewer, "/runs/first/trials/8")
        assert "not over yet" in await text_of(viewer, "/runs/first/trials/16")
        assert "The agent stopped: context_limit" in await text_of(viewer, "/runs/first/trials/1")


@pytest.mark.parametrize("sample", SAMPLES)
async def test_a_sample_of_any_name_has_its_page_and_no_other(client: Client, sample: str) -> None:
    async with client() as viewer:
        trial = await text_of(viewer, f"/runs/first/trials/{SAMPLES.index(sample)}")
        found = re.search(r'href="(/runs/first/sample\?[^"]+)"', trial)
        assert found is not None
        page = await text_of(viewer, found[1].replace("&amp;", "&"))
    numbers = set(re.findall(r'href="/runs/first/trials/(\d+)"', page))
    place = SAMPLES.index(sample)
    assert numbers == {str(place + n * len(SAMPLES)) for n in range(3)}


async def test_pages_of_trials_follow_each_other_by_links(client: Client) -> None:
    met, address = [], "/runs/first/trials?size=5&sort=-score"
    async with client() as viewer:
        while address:
            page = await text_of(viewer, address)
            met += re.findall(r'<td><a href="/runs/first/trials/(\d+)[?"]', page)
            following = re.search(r'rel="next" href="([^"]+)"', page)
            address = following[1].replace("&amp;", "&") if following else ""
    assert sorted(map(int, met)) == list(range(24))


async def test_the_json_of_trials_counts_the_answers_that_were_cut(client: Client) -> None:
    async with client() as viewer:
        items = (await viewer.get("/api/v1/runs/first/trials?size=24")).json()["items"]
    assert {item["id"]: item["cut_answers"] for item in items if item["cut_answers"] != 0} == {
        0: 1,
        **dict.fromkeys(range(16, 24)),
    }


async def test_two_thousand_turns_open_at_the_one_that_is_asked_for(folder: Path, client: Client) -> None:
    store = Store(connect(sqlite_url(folder / "first")), "first")
    one = read_trajectory(store, 0).turns[1]
    with store.engine.begin() as connection:
        for number in range(4, 2001):
            connection.exec_driver_sql(
                "INSERT INTO proctor_turn SELECT run, trial, journal, ?, digest, observation, reply, prompt_tokens, "
                "completion_tokens, model_seconds, tries, cached_tokens, reasoning_tokens, world_seconds, stop, model, "
                "metered, ended_at, 0, 0, 0, 0.0, replica FROM proctor_turn WHERE trial = 0 AND turn = ?",
                (number, one.turn),
            )
    async with client() as viewer:
        page = await text_of(viewer, "/runs/first/trials/0?turn=1999")
        parts = [(await viewer.get(f"/api/v1/runs/first/trials/0?size=60&after={n}")).json() for n in (1900, 1960)]
    listed = [[item["turn"] for item in part["turns"]["items"]] for part in parts]
    assert (listed, parts[0]["turns"]["next"]) == ([[*range(1901, 1961)], [*range(1961, 2001)]], "1960")
    assert parts[1]["turns"]["next"] is None
    assert [part["turns"]["items"][-1]["earlier"] for part in parts] == [3_919, 3_999]
    assert re.findall(r'id="turn-(\d+)"', page) == [str(number) for number in range(1951, 2001)]
    assert len(page) < 150_000


async def test_a_trial_leads_to_those_beside_it_in_the_filter_that_it_was_opened_from(client: Client) -> None:
    met, address = [], ""
    async with client() as viewer:
        table = await text_of(viewer, "/runs/first/trials?agent=gpt&sort=-score&size=5")
        address = re.findall(r'<th scope="row" class="left sample"><a href="([^"]+)"', table)[0]
        while address:
            page = await text_of(viewer, address.replace("&amp;", "&"))
            assert 'rel="up" href="/runs/first/trials?agent=gpt&amp;sort=-score"' in page
            met.append(address.partition("?")[0].rpartition("/")[2])
            following = re.search(r'rel="next" href="([^"]+)"', page)
            address = following[1] if following else ""
        before = re.search(r'rel="prev" href="/runs/first/trials/(\d+)\?', page)
        rows = (await viewer.get("/api/v1/runs/first/trials?agent=gpt&sort=-score")).json()["items"]
        plain = await text_of(viewer, "/runs/first/trials/5")
    assert met == [str(row["id"]) for row in rows]
    assert before is not None
    assert before[1] == met[-2]
    assert re.findall(r'rel="(prev|next)" href="/runs/first/trials/(\d+)"', plain) == [("prev", "4"), ("next", "6")]


async def test_the_overview_is_given_as_the_file_that_the_command_writes(folder: Path, client: Client) -> None:
    expected = report_page(Store(connect(sqlite_url(folder / "first")), "first"))
    async with client() as viewer:
        answer = await viewer.get("/runs/first/report.html")
        overview = await text_of(viewer, "/runs/first")
    assert answer.text == expected
    assert answer.headers["content-disposition"] == 'attachment; filename="first.html"'
    assert {name: answer.headers.get(name) for name in SECURITY} == SECURITY
    assert 'href="/runs/first/report.html"' in overview
    scores = re.compile(r'<tbody id="matrix".*?</tbody>', re.DOTALL)
    shown, saved = (re.sub(r' (href|title)="[^"]*"', "", scores.findall(page)[0]) for page in (overview, expected))
    assert shown == saved, "the same scores, which lead nowhere"

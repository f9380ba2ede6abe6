"""`proctor webshop`, and the shop in a browser."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from environments.webshop.commands import webshop
from environments.webshop.environment import WebShop
from environments.webshop.shop.browse import app
from environments.webshop.shop.shop import Shop, opened
from tests.pace import slowly

NASTY = "<script>alert('x')</script> & \"quoted\""


def said(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(webshop, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_a_catalogue_is_invented_indexed_and_played(tmp_path: Path) -> None:
    files, made = tmp_path / "files", tmp_path / "made"
    code, output = said("generate", files, "--products", "80", "--goals", "9", "--seed", "4")
    assert (code, "80 products, 9 goals" in output) == (0, True)
    code, output = said("index", files, made)
    assert (code, "80 products, 9 goals, nouns by lexical 1" in output) == (0, True)
    assert len(WebShop(data=made).samples()) == 9
    assert "invented" in (WebShop(data=made).not_comparable_because() or "")
    for again in (said("generate", files), said("index", files, made)):
        assert again[0] == 2
        assert "already exists" in again[1]


def test_bad_input_gets_one_message(tmp_path: Path) -> None:
    code, output = said("index", tmp_path, tmp_path / "made")
    assert (code, "no items_shuffle.json" in output) == (2, True)
    said("generate", tmp_path / "files", "--products", "5", "--goals", "5")
    code, output = said("index", tmp_path / "files", tmp_path / "made", "--nouns", "no_such_model")
    assert (code, "use lexical" in output) == (2, True)
    code, output = said("generate", tmp_path / "many", "--products", "5")
    assert (code, "500 for 5 products" in output) == (2, True)
    code, output = said("browse", "--data", tmp_path)
    assert (code, "proctor webshop index" in output) == (2, True)


def test_a_file_in_the_way_gets_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        code, output = said("generate", folder, "--products", "5", "--goals", "5")
        assert code == 2
        assert f"{folder}: " in output
        assert "new folder" in output


def test_a_full_disk_gets_one_message_and_leaves_nothing(tmp_path: Path) -> None:
    said("generate", tmp_path / "files", "--products", "300", "--goals", "5", "--compress")
    script = (
        "import resource; from environments.webshop.commands import webshop; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)); webshop(['index', 'files', 'made'])"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=slowly(60)
    )
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
    assert "made: can't be written: " in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


def test_expectations_that_can_t_be_read_are_refused_before_the_work(tmp_path: Path) -> None:
    said("generate", tmp_path / "files", "--products", "5", "--goals", "5")
    expected = tmp_path / "expected.json"
    expected.write_text('[{"goal_index": "first"}]')
    code, output = said("index", tmp_path / "files", tmp_path / "made", "--check", expected)
    assert (code, "0.goal_index" in output) == (2, True)
    assert not (tmp_path / "made").exists()
    expected.write_text('[{"goal_index": 99, "instruction": ""}]')
    code, output = said("index", tmp_path / "files", tmp_path / "made", "--check", expected)
    assert (code, "expected.json: 0.goal_index: no goal 99" in output) == (2, True)


def test_the_published_goals_are_held_against_the_index(tmp_path: Path) -> None:
    said("generate", tmp_path / "files", "--products", "5", "--goals", "5")
    expected = tmp_path / "expected.json"
    expected.write_text(json.dumps([{"goal_index": 0, "instruction": ""}]))
    code, output = said("index", tmp_path / "files", tmp_path / "made", "--check", expected)
    assert (code, "1 goals agree" in output) == (0, True)
    expected.write_text(json.dumps([{"goal_index": 0, "instruction": "something else"}]))
    code, output = said("index", tmp_path / "files", tmp_path / "other", "--check", expected)
    assert (code, "goal 0 is" in output) == (2, True)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A shop of one product whose every text is nasty."""
    product = {
        "asin": "<B&1>",
        "name": NASTY,
        "full_description": NASTY,
        "small_description": [NASTY],
        "customization_options": {NASTY: [{"value": NASTY}, {"value": "plain"}]},
    }
    goal = {"instruction": NASTY, "instruction_attributes": [NASTY.lower()], "instruction_options": ["plain"]}
    for name, content in (("items_shuffle", [product]), ("items_ins_v2", {}), ("items_human_ins", {"<B&1>": [goal]})):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    assert said("index", tmp_path, tmp_path / "made")[0] == 0
    with opened(tmp_path / "made") as found:
        yield found


def link(html: str, text: str) -> str:
    """Where the link of a text leads."""
    targets = {unescape(label): unescape(target) for target, label in re.findall(r'href="([^"]*)">([^<]*)</a>', html)}
    return targets[text]


def test_a_person_shops_in_the_browser_and_nothing_is_left_unescaped(shop: Shop) -> None:
    with TestClient(app(shop, "compat"), base_url="http://127.0.0.1") as client:
        start = client.get("/")
        assert start.url.path == "/0"
        pages = [start, client.get("/0", params={"place": "{}", "keywords": "Alert SCRIPT"})]
        for text in ("<B&1>", "plain", "Description", "< Prev", "Features", "< Prev", "Buy Now"):
            pages.append(client.get(link(pages[-1].text, text)))
    for page in pages:
        assert page.status_code == 200
        assert "<script" not in page.text.lower()
        assert "default-src 'none'" in page.headers["content-security-policy"]
    assert 'class="button chosen"' in pages[3].text
    place = json.loads(parse_qs(urlsplit(str(pages[-1].url)).query)["place"][0])
    assert (place["bought"], list(place["chosen"].values())) == (True, ["plain"])
    assert "<td>reward</td><td>1.0</td>" in pages[-1].text


@pytest.mark.parametrize(
    "url",
    [
        "/7",
        "/99999999999999999999999",
        "/0?place=nonsense",
        '/0?place={"product": 5}',
        '/0?place={"bought": true}',
        '/0?place={"keywords": "a", "number": 0}',
        '/0?place={"sub_page": "Attributes", "product": 0}',
        '/0?place={"keywords": "a", "hits": [77]}',
        '/0?place={"product": 99999999999999999999999}',
    ],
)
def test_what_a_url_gets_wrong_is_not_found(shop: Shop, url: str) -> None:
    with TestClient(app(shop, "compat"), base_url="http://127.0.0.1") as client:
        assert client.get(url).status_code == 404


def test_other_hosts_are_refused(shop: Shop) -> None:
    with TestClient(app(shop, "compat"), base_url="http://rebound.example") as client:
        assert client.get("/0").status_code == 400


def test_a_refused_click_stays_where_it_is(shop: Shop) -> None:
    with TestClient(app(shop, "strict"), base_url="http://127.0.0.1") as client:
        stayed = client.get("/0", params={"place": "{}", "click": "buy now"})
    assert "keywords" in stayed.text

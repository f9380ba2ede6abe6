"""The acceptance list of the WebShop environment, one test a line under its number."""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from environments.webshop import policies, reply
from environments.webshop.catalogue import nouns, published
from environments.webshop.catalogue.index import Index
from environments.webshop.catalogue.make import make
from environments.webshop.catalogue.product import Goal, Product
from environments.webshop.catalogue.records import Importer
from environments.webshop.environment import WebShop
from environments.webshop.reply import ShopMove
from environments.webshop.scoring import COLOURS, plain_colour, reward, title_score, type_factor
from environments.webshop.search import Search
from environments.webshop.shipped import catalogue
from environments.webshop.shop import pages
from environments.webshop.shop.shop import Shop, opened
from environments.webshop.shop.visit import Place, Visit
from proctor.environment import Policy
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Finish, FinishReason
from tests.pace import Meter, slowly
from tests.support import ROOT, SHARED_DATA
from tests.unit.environments.fixed_policies import garbage, looker

Json = Mapping[str, Any]
DATA = SHARED_DATA / "webshop"
FIRST_HIT = 0.7171071
"""What the naive policy reaches on the shipped goals."""


def read(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def some_product(**fields: object) -> Product:
    plain: dict[str, object] = {
        "asin": "B000000001",
        "title": "",
        "description": "",
        "bullets": ("",),
        "price_tag": "$1.0",
        "price": 1.0,
        "category": "garden",
        "query": "tables",
        "product_category": "Home › Furniture › Tables",
        "options": {},
        "attributes": (),
        "nouns": ("table",),
        "image": "",
    }
    return Product.model_validate(plain | fields)


def some_goal(**fields: object) -> Goal:
    plain: dict[str, object] = {
        "asin": "B000000001",
        "instruction": "i want a table",
        "attributes": ("solid wood",),
        "options": (),
        "price_upper": 10.0,
        "category": "garden",
        "query": "tables",
        "name": "table",
        "product_category": "Home › Furniture › Tables",
        "nouns": ("table",),
    }
    return Goal.model_validate(plain | fields)


# 1 and 2: the reward.

SHARED_NOUNS = {1.0: 20, 0.5: 3, 0.1: 1, 0.0: 0}
"""Of twenty nouns of a goal, how many a product without any other match has in common for this type factor."""
TWENTY = tuple(f"noun{number}" for number in range(20))


@pytest.mark.shared
def test_1_all_reward_vectors_come_out_equal_in_every_part() -> None:
    vectors = read("reward_vectors.json")
    assert len(vectors) == 200
    for vector in vectors:
        wanted, bought, expected = vector["goal"], vector["purchased"], vector["expected"]
        shared = SHARED_NOUNS[vector["r_type_given"]]
        goal = some_goal(
            attributes=wanted["attributes"],
            options=wanted["goal_options"],
            price_upper=wanted["price_upper"],
            nouns=TWENTY,
            query="another",
            product_category="Elsewhere",
        )
        product = some_product(
            attributes=bought["Attributes"],
            title=bought["Title"],
            bullets=bought["BulletPoints"],
            description=bought["Description"],
            price=bought["price"],
            nouns=TWENTY[:shared],
        )
        found = reward(goal, product, bought["options"], "compat")
        assert found.reward == pytest.approx(expected["reward"], abs=1e-9)
        assert found.attribute_matches == expected["num_attr_matches"]
        assert found.option_matches == expected["num_option_matches"]
        assert found.r_option == (None if expected["r_option"] is None else pytest.approx(expected["r_option"]))
        parts = found.model_dump()
        for name, value in expected["info"].items():
            assert parts[name] == pytest.approx(float(value), abs=1e-9), name


@pytest.mark.parametrize(
    ("title", "without", "matched"),
    [(0, 0, 0), (0.05, 0.1, 0.1), (0.1, 0.5, 1), (0.15, 0.5, 1), (0.2, 0.5, 1), (0.21, 1, 1)],
)
def test_1_the_type_rule(title: float, without: float, matched: float) -> None:
    assert type_factor(title, query_match=False, category_match=False) == without
    for query, category in ((True, False), (False, True), (True, True)):
        assert type_factor(title, query_match=query, category_match=category) == matched


def test_2_the_colour_table_has_102_words_and_the_first_that_fits_counts() -> None:
    assert len(COLOURS) == len(set(COLOURS)) == 102
    assert list(COLOURS) == sorted(COLOURS)
    table = {
        "black forest": "black",
        "violet lavender": "lavender",
        "steelivy fuchsia": "fuchsia",
        "webshop": "webshop",
        "navy blue": "blue",
        "2 light": "light",
        "bored": "red",
    }
    assert {value: plain_colour(value, whole_words=False) for value in table} == table
    assert plain_colour("bored", whole_words=True) == "bored"


# 3: the search.


@pytest.fixture(scope="module")
def oracle_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Shop, list[str]]]:
    """A catalogue whose titles are the oracle's documents, and their names by position."""
    folder = tmp_path_factory.mktemp("oracle")
    lines = (DATA / "lucene_oracle" / "docs.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    products = [{"asin": document["id"], "name": document["contents"]} for document in documents]
    write_files(
        folder / "files", products, {products[0]["asin"]: [{"instruction": "any", "instruction_attributes": ["any"]}]}
    )
    make(published.files_in(folder / "files"), folder / "catalogue", nouns.extractor("lexical"))
    with opened(folder / "catalogue") as shop:
        yield folder / "catalogue", shop, [document["id"] for document in documents]


def write_files(folder: Path, products: Sequence[Json], human: Json, attributes: Json | None = None) -> None:
    folder.mkdir(parents=True)
    for name, content in (
        ("items_shuffle", products),
        ("items_ins_v2", attributes or {}),
        ("items_human_ins", human),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def oracle_run() -> dict[str, list[tuple[str, float]]]:
    run = defaultdict(list)
    for line in (DATA / "lucene_oracle" / "anserini_bm25_top50.trec").read_text().splitlines():
        query, _, document, _, score, _ = line.split()
        run[query].append((document, float(score)))
    return run


def oracle_queries() -> list[list[str]]:
    lines = (DATA / "lucene_oracle" / "queries.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines]


@pytest.mark.shared
def test_3_exact_mode_gives_the_ids_the_order_and_the_scores_of_lucene(
    oracle_shop: tuple[Path, Shop, list[str]],
) -> None:
    folder, shop, names = oracle_shop
    run, queries = oracle_run(), oracle_queries()
    assert len(queries) == 150
    exact = exact_search(folder, shop)
    for query, text in queries:
        hits = exact.find(text).hits
        assert [names[hit.position] for hit in hits] == [name for name, _ in run[query]]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in run[query]], abs=1e-3)


@pytest.mark.shared
def test_3_candidate_mode_has_the_same_first_and_99_percent_of_the_others(
    oracle_shop: tuple[Path, Shop, list[str]],
) -> None:
    _, shop, names = oracle_shop
    run, shared, wanted = oracle_run(), 0, 0
    for query, text in oracle_queries():
        found = [names[hit.position] for hit in shop.search.find(text).hits]
        expected = [name for name, _ in run[query]]
        assert found[0] == expected[0]
        shared += len(set(found) & set(expected))
        wanted += len(expected)
    assert shared >= 0.99 * wanted


def exact_search(folder: Path, shop: Shop) -> Search:
    return Search(shop.store, Index(folder / "index"), exact=True)


# 4: the pages.


class Rendered(HTMLParser):
    """The visible text of a published page, and what can be clicked, read off its HTML alone."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.buttons: list[str] = []
        self.links: list[str] = []
        self.choices: list[tuple[str, str]] = []
        self._open: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "input" and found.get("type") == "radio":
            self.choices.append((found["name"], found["value"]))
        if tag not in ("input", "img", "br", "meta", "link"):
            self._open.append((tag, found.get("class", "")))

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        tag, kind = self._open[-1] if self._open else ("", "")
        if tag in ("script", "style") or (not data.strip() and "\n" in data):
            return
        if data:
            self.pieces.append(data.strip())
        if "btn" in kind.split():
            self.buttons.append(data)
        if kind == "product-link":
            self.links.append(data)

    @property
    def clickables(self) -> list[str]:
        names = [*self.buttons, *self.links]
        return list(dict.fromkeys([*(name.lower() for name in names), *(value for _, value in self.choices)]))


def rendered(name: str) -> Rendered:
    return Rendered((DATA / "pages" / name).read_text(encoding="utf-8"))


def same(page: pages.Page, html: Rendered) -> None:
    assert page.text() == " [SEP] ".join(html.pieces)
    assert list(page.clickables()) == html.clickables


@pytest.mark.shared
def test_4_the_result_page_reads_as_published() -> None:
    html = rendered("mock_parse_results_ws.html")
    cells = html.pieces[html.pieces.index("Next >") + 1 :]
    products = [
        some_product(asin=asin, title=title, price_tag=tag)
        for asin, title, tag in zip(cells[::3], cells[1::3], cells[2::3], strict=True)
    ]
    same(pages.result_page(html.pieces[1], 1, 50, products, more=True), html)
    assert len(html.clickables) == 12


@pytest.mark.shared
def test_4_the_item_page_reads_as_published() -> None:
    html = rendered("mock_parse_item_page_ws.html")
    options: dict[str, list[str]] = {}
    for name, value in html.choices:
        options.setdefault(name, []).append(value)
    product = some_product(title=html.pieces[-7], price_tag="$100.0", options=options)
    same(pages.item_page(html.pieces[1], product), html)
    assert len(html.clickables) == 14


@pytest.mark.shared
def test_4_the_sub_pages_read_as_published() -> None:
    html = rendered("mock_parse_item_page_ws_desc.html")
    same(pages.sub_page(html.pieces[1], some_product(description=html.pieces[4]), "Description"), html)
    html = rendered("mock_parse_item_page_ws_feat.html")
    same(pages.sub_page(html.pieces[1], some_product(bullets=html.pieces[4:]), "Features"), html)


# 5 and 6: nouns and records.


@pytest.mark.shared
def test_5_title_scores_are_on_the_same_side_of_the_thresholds() -> None:
    cases = read("title_score_cases.json")
    assert len(cases) == 4
    for case in cases:
        score = title_score(nouns.lexical(case["goal_name"]), nouns.lexical(case["purchased_name"]))
        assert [score > limit for limit in (0.1, 0.2)] == [case["title_score"] > limit for limit in (0.1, 0.2)]


@pytest.mark.textworld  # which brings spaCy along
def test_5_nouns_are_what_a_spacy_model_tags_as_nouns_and_names(tmp_path: Path) -> None:
    spacy: Any = import_module("spacy")
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("attribute_ruler")
    for word, tag in (("Acme", "PROPN"), ("table", "NOUN"), ("folds", "VERB"), ("wooden", "ADJ")):
        ruler.add([[{"ORTH": word}]], {"POS": tag})
    pipeline.to_disk(tmp_path / "model")
    extractor = nouns.extractor(str(tmp_path / "model"))
    assert extractor.nouns("wooden Acme table folds") == ("acme", "table")
    assert spacy.__version__ in extractor.version


@pytest.mark.shared
def test_5_title_scores_by_a_spacy_model_are_within_tolerance() -> None:
    """Runs where somebody has installed a model: none can be had from PyPI, Debian or npm, so CI has none either."""
    spacy = pytest.importorskip("spacy", reason="no spaCy")
    models = [name for name in ("en_core_web_lg", "en_core_web_sm") if spacy.util.is_package(name)]
    if not models:
        pytest.skip("no spaCy model is installed; PyPI has none")
    tagged = nouns.extractor(models[0]).nouns
    for case in read("title_score_cases.json"):
        score = title_score(tagged(case["goal_name"]), tagged(case["purchased_name"]))
        assert score == pytest.approx(case["title_score"], abs=case["abs_tol"])


@pytest.mark.shared
def test_6_the_real_record_is_imported() -> None:
    importer = Importer(nouns.extractor("lexical"), seed=0)
    product = importer.product(read("items_shuffle_1000_record0.json")[0], {}, 0)
    assert product is not None
    assert (product.price, product.price_tag) == (877.8, "$877.8")
    assert product.options == {}
    assert len(product.bullets) == 4
    assert product.attributes == ("DUMMY_ATTR",)
    assert product.query == "console tables"
    assert importer.problems.total() == 0


# 7: replies and searches; pages, options and what is not offered are golden/webshop.jsonl.


@pytest.mark.parametrize(
    "text", ["Action: Search[x]", "Action: search[]", "Action: search x", "search[x]", "**click[x]**", ""]
)
def test_7_what_is_no_action_is_none_in_strict_either(text: str) -> None:
    assert reply.read(text, "strict") is None


@pytest.mark.parametrize("piece", ["action:", "action: ", "ACTION:**\n", "action:`search[", "*"])
def test_7_a_long_reply_is_read_in_strict_too(piece: str) -> None:
    assert reply.read(piece * (1_000_000 // len(piece)), "strict") is None


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the shipped catalogue."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def shop(shipped: Path) -> Iterator[Shop]:
    with opened(catalogue(shipped)) as found:
        yield found


@pytest.mark.parametrize("keywords", ["word " * 2_000, "x" * 10_000, "\x00\ud800"])
def test_7_no_search_is_an_error(shop: Shop, keywords: str) -> None:
    visit = Visit(shop, "i want a thing", "compat")
    place = visit.after(Place(), ShopMove("search", keywords))
    assert place is not None
    assert len(place.keywords or "") <= 1_000
    assert f"(Total results: {len(place.hits)})" in visit.page(place).text()


# 8: the policies.


@pytest.fixture
async def environment(shipped: Path) -> AsyncIterator[WebShop]:
    environment = WebShop(cache=shipped)
    async with environment.lifespan():
        yield environment


async def played(environment: WebShop, policy: Callable[[str], Policy]) -> list[Finish]:
    samples = environment.samples()
    return [await play_to_finish(environment, sample, PolicyAgent(policy(sample))) for sample in samples]


async def test_8_and_11_gold_reaches_1_on_every_goal_in_both_profiles_within_a_minute(shipped: Path) -> None:
    for profile in ("compat", "strict"):
        environment = WebShop(cache=shipped, profile="compat" if profile == "compat" else "strict")
        async with environment.lifespan():
            with Meter() as meter:
                finishes = await played(environment, environment.reference)
        assert len(finishes) == 200
        assert {(finish.reason, finish.score) for finish in finishes} == {(FinishReason.COMPLETED, 1.0)}
        assert meter.cost_s < 60


def test_8_every_goal_product_is_among_the_first_twenty_of_its_title(shop: Shop) -> None:
    for index in range(shop.store.meta.goals):
        goal = shop.store.goal(index)
        assert shop.store.position(goal.asin) in [hit.position for hit in shop.search.find(goal.name).hits[:20]]


async def test_8_gold_without_options_loses_just_the_options(environment: WebShop) -> None:
    def gold_without_options(sample: str) -> Policy:
        goal = environment.goal(sample)
        return policies.buyer(goal.asin, goal.name, ())

    finishes = await played(environment, gold_without_options)
    for sample, finish in zip(environment.samples(), finishes, strict=True):
        attributes, options = (
            len(part) for part in (environment.goal(sample).attributes, environment.goal(sample).options)
        )
        assert finish.score == pytest.approx((attributes + 1) / (attributes + options + 1))
        assert (finish.score == 1.0) == (options == 0)


async def test_8_the_first_hit_is_weak_and_chance_is_weaker(environment: WebShop) -> None:
    first = fmean(finish.score or 0.0 for finish in await played(environment, environment.naive))
    chance = fmean(finish.score or 0.0 for finish in await played(environment, environment.random))
    assert first == pytest.approx(FIRST_HIT, abs=1e-6)
    assert 0.2 < first < 0.8
    assert chance < 0.1


async def test_8_a_product_of_another_kind_is_worth_nothing(environment: WebShop, shop: Shop) -> None:
    products = [shop.store.product(position) for position in range(shop.store.meta.products)]

    def wrong_category(sample: str) -> Policy:
        goal = environment.goal(sample)
        other = next(
            product
            for product in products
            if product.category != goal.category and not set(product.nouns) & set(goal.nouns)
        )
        return policies.buyer(other.asin, other.title, ())

    finishes = await played(environment, wrong_category)
    assert {(finish.reason, finish.score) for finish in finishes} == {(FinishReason.COMPLETED, 0.0)}


@pytest.mark.parametrize(
    ("policy", "reason"),
    [(looker, FinishReason.TURN_LIMIT), (garbage, FinishReason.INVALID_FORMAT)],
)
async def test_8_looking_and_talking_buy_nothing(environment: WebShop, policy: Policy, reason: FinishReason) -> None:
    for finish in await played(environment, lambda _: policy):
        assert (finish.reason, finish.score) == (reason, 0.0)
        assert finish.metrics["rounds"] == (10 if reason is FinishReason.TURN_LIMIT else 1)


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=slowly(600)).stdout


# 10: what it costs; 9 is measured by benchmarks/worlds_webshop.py

GROWTH = """
import asyncio, sys
from pathlib import Path
from proctor.session.play import PolicyAgent, play_to_finish
from environments.webshop.environment import WebShop

def rss():
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0])

async def main():
    environment = WebShop(cache=Path(sys.argv[1]))
    async with environment.lifespan():
        samples = environment.samples()
        for number in range(1000):
            sample = samples[number % len(samples)]
            await play_to_finish(environment, sample, PolicyAgent(environment.reference(sample)))
            before = rss() if number == 100 else before if number > 100 else 0
        print((rss() - before) / 1024)

asyncio.run(main())
"""


@pytest.mark.thorough
def test_10_a_thousand_sessions_leave_memory_flat(shipped: Path) -> None:
    assert float(run(GROWTH, str(shipped))) < 5

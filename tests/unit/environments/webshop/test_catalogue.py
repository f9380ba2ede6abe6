"""How published files become a catalogue, and what is said of broken ones."""

import gzip
import json
import random
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.webshop.catalogue import make as catalogue
from environments.webshop.catalogue import published
from environments.webshop.catalogue.make import DATABASE, make
from environments.webshop.catalogue.nouns import NounExtractor, extractor, lexical
from environments.webshop.catalogue.product import price_limit
from environments.webshop.catalogue.published import files_in, members, records
from environments.webshop.catalogue.records import Importer
from environments.webshop.catalogue.store import CatalogueStore
from environments.webshop.shop.shop import opened
from tools.datagen.webshop import generator

LEXICAL = extractor("lexical")
Json = Mapping[str, object]


def imported(field: str, record: Json, entry: Json | None = None) -> tuple[object, Mapping[str, int]]:
    """A field of the product that a record becomes, and the problems that are counted; for tables."""
    importer = Importer(LEXICAL, seed=0)
    return getattr(importer.product({"asin": "A1", **record}, entry or {}, 0), field), importer.problems


def test_a_range_gets_a_price_within_it_for_good() -> None:
    prices = set()
    for seed in (0, 0, 1):
        product = Importer(LEXICAL, seed).product({"asin": "A1", "pricing": "$10 - $20"}, {}, 0)
        assert product is not None
        assert 10 <= product.price <= 20
        prices.add(product.price)
    assert len(prices) == 2


def test_unusable_and_repeated_asins_are_dropped_and_counted() -> None:
    importer = Importer(LEXICAL, seed=0)
    asins = ["A1", "nan", float("nan"), None, "ELEVENCHARS", "A1", "TENCHARS10"]
    kept = [product.asin for asin in asins if (product := importer.product({"asin": asin}, {}, 0))]
    assert kept == ["A1", "TENCHARS10"]
    assert importer.problems == {
        "dropped: asin missing": 3,
        "dropped: asin too long": 1,
        "dropped: asin seen before": 1,
    }


@pytest.mark.parametrize(
    ("price", "limits"),
    [(5.0, {20, 30, 40}), (10.0, {30, 40, 50}), (965.0, {980, 990}), (975.0, {990}), (985.0, {None})],
)
def test_a_price_limit_is_the_larger_of_two_of_the_next_four_tens(price: float, limits: set[float | None]) -> None:
    assert {price_limit(price, "A1", position, 0) for position in range(60)} == limits


@given(st.lists(st.dictionaries(st.text(), st.integers() | st.text() | st.none())), st.integers(1, 40))
def test_a_big_array_is_read_entry_by_entry(
    tmp_path_factory: pytest.TempPathFactory, content: list[dict[str, object]], indent: int
) -> None:
    path = tmp_path_factory.mktemp("array") / "a.json"
    path.write_text(json.dumps(content, indent=indent % 4 or None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "CHUNK", indent)
        assert list(records(path)) == content


def told_of_array(text: str) -> str:
    """What is said of a broken array, without its folder; for tables."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.json"
        path.write_text(text)
        with pytest.raises(ValueError, match="items") as refused:
            list(records(path))
        return str(refused.value).replace(folder, "")


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_a_broken_entry_is_named_by_its_line_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(published, "CHUNK", chunk)
    path = tmp_path / "items.json"
    path.write_text('[\n{"a": 1},\n\n{"a":\n2},\n{"a": 3,\n"b" 4},\n{"a": 5}\n]\n')
    with pytest.raises(ValueError, match=r"items\.json: line 7, entry 3: Expecting ':' delimiter; get the file anew"):
        list(records(path))


@pytest.mark.parametrize("damage", [lambda content: content[:-12], lambda content: content[:10] + b"\x07" * 20])
def test_a_cut_or_damaged_compressed_file_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "items.json.gz"
    path.write_bytes(damage(gzip.compress(json.dumps([{"a": "b" * 1000}]).encode())))
    with pytest.raises(ValueError, match="get the file anew"):
        list(records(path))


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 100])
def test_members_keep_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(published, "CHUNK", chunk)
    path = tmp_path / "ins.json"
    path.write_text('{"b": {"x": 1}, "a": [], "c": 1234}')
    assert list(members(path)) == [("b", {"x": 1}), ("a", []), ("c", 1234)]


def written(folder: Path, products: Sequence[Json], human: Json, attributes: Json | None = None) -> Path:
    folder.mkdir(parents=True)
    contents = {"items_shuffle": products, "items_ins_v2": attributes or {}, "items_human_ins": human}
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


PRODUCTS = [{"asin": f"A{number}", "name": f"table {number}", "pricing": "$10"} for number in range(5)]


def wish(text: str, **more: object) -> dict[str, object]:
    return {"instruction": text, "instruction_attributes": ["solid"], "instruction_options": ["red"], **more}


def test_goals_stand_in_the_published_order(tmp_path: Path) -> None:
    human = {
        "A3": [wish("..three..."), wish("no attributes", instruction_attributes=[])],
        "A0": [wish("zero"), wish("zero again", instruction_options={"Color": "blue", "Size": "xl"})],
        "gone": [wish("of no product")],
        "A1": [wish("one")],
    }
    files = files_in(written(tmp_path / "files", PRODUCTS, human))
    meta = make(files, tmp_path / "made", LEXICAL)
    assert meta.problems == {"instructions for unknown products": 1, "instructions without attributes": 1}
    order = ["zero", "zero again", "one", "three"]
    random.seed(233)
    random.shuffle(order)
    with closing(CatalogueStore(tmp_path / "made" / DATABASE)) as store:
        goals = [store.goal(index) for index in range(meta.goals)]
        with pytest.raises(ValueError, match="no goal 4; the catalogue has 4"):
            store.goal(4)
    assert [goal.instruction.partition(",")[0] for goal in goals] == order
    assert {goal.options for goal in goals} == {("red",), ("blue", "xl")}
    for goal in goals:
        assert goal.instruction.endswith(f", and price lower than {goal.price_upper:.2f} dollars")
        assert goal.price_upper in (30, 40, 50)


def test_instructions_that_can_t_be_read_are_counted_and_no_goals(tmp_path: Path) -> None:
    human = {"A0": [5, wish(""), {"instruction_attributes": ["solid"]}], "A1": "text", "A2": wish("no list")}
    meta = make(files_in(written(tmp_path / "files", PRODUCTS, human)), tmp_path / "made", LEXICAL)
    assert (meta.goals, meta.problems) == (1, {"instructions unreadable": 4})


def test_an_interrupted_import_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(title: str) -> tuple[str, ...]:
        if title == "table 3":
            raise KeyboardInterrupt
        return lexical(title)

    files = files_in(written(tmp_path / "files", PRODUCTS, {"A0": [wish("zero")]}))
    with pytest.raises(KeyboardInterrupt):
        make(files, tmp_path / "made", NounExtractor("interrupted", "1", interrupted))
    assert [path.name for path in tmp_path.iterdir()] == ["files"]
    make(files, tmp_path / "made", LEXICAL)


def test_files_without_anything_usable_are_refused(tmp_path: Path) -> None:
    files = files_in(written(tmp_path / "files", PRODUCTS, {}))
    with pytest.raises(ValueError, match=r"items_human_ins\.json: nothing usable"):
        make(files, tmp_path / "made", LEXICAL)


def test_a_folder_without_the_published_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no items_shuffle\.json"):
        files_in(tmp_path)
    (tmp_path / "items_shuffle_1000.json").write_text("[]")
    with pytest.raises(ValueError, match=r"items_ins_v2_1000\.json is missing"):
        files_in(tmp_path)


def test_a_missing_broken_or_foreign_catalogue_is_refused_with_the_command_that_makes_one(tmp_path: Path) -> None:
    files = files_in(written(tmp_path / "files", PRODUCTS, {"A0": [wish("zero")]}))
    with pytest.raises(ValueError, match="proctor webshop index"), opened(tmp_path / "nowhere"):
        pass
    for name, sql, says in (
        ("format", "update meta set meta = json_set(meta, '$.format', 0)", "format 0"),
        ("counts", "update meta set meta = json_set(meta, '$.products', 6)", "index has 5 products, the database 6"),
        ("empty", "delete from meta", "no catalogue"),
        ("foreign", "update meta set meta = '{}'", "no catalogue"),
        ("edited", "update meta set meta = json_set(meta, '$.goals', 0)", "meta.goals: must be"),
    ):
        make(files, tmp_path / name, LEXICAL)
        with closing(sqlite3.connect(tmp_path / name / DATABASE)) as connection:
            connection.execute(sql)
            connection.commit()
        with pytest.raises(ValueError, match=rf"{says}.*proctor webshop index") as refused, opened(tmp_path / name):
            pass
        assert "\n" not in str(refused.value)
    make(files, tmp_path / "no-index", LEXICAL)
    for file in (tmp_path / "no-index" / catalogue.INDEX).iterdir():
        file.unlink()
    with pytest.raises(ValueError, match=r"no search index.*proctor webshop index"), opened(tmp_path / "no-index"):
        pass


def test_an_invented_catalogue_follows_from_size_and_seed(tmp_path: Path) -> None:
    for name, seed in (("one", 0), ("same", 0), ("other", 1)):
        generator.write(tmp_path / name, 60, 20, seed)
    texts = [(tmp_path / name / "items_shuffle.json").read_text() for name in ("one", "same", "other")]
    assert texts[0] == texts[1] != texts[2]
    with pytest.raises(ValueError, match="61 for 60 products"):
        generator.write(tmp_path / "many", 60, 61)


def test_large_invented_catalogues_have_300_kinds_with_paths_of_up_to_five_steps() -> None:
    kinds = generator.product_kinds(large=True)
    assert len({kind.name for kind in kinds}) == 300
    made = [generator.product(position, kinds, 10_000, seed=0).record for position in range(500)]
    assert {str(record["product_category"]).count(" › ") + 1 for record in made} == {3, 4, 5}


def test_an_invented_catalogue_has_what_a_real_one_has(tmp_path: Path) -> None:
    generator.write(tmp_path / "files", 2_000, 400, compress=True)
    meta = make(files_in(tmp_path / "files"), tmp_path / "made", LEXICAL)
    assert (meta.products, meta.goals, meta.invented) == (2_000, 400, True)
    assert all(meta.problems[name] for name in ("dropped: asin missing", "price unreadable", "option without values"))
    with closing(CatalogueStore(tmp_path / "made" / DATABASE)) as store:
        products = [store.product(position) for position in range(2_000)]
        goals = [store.goal(index) for index in range(400)]
    assert len({product.query for product in products}) == 60
    assert {product.category for product in products} == {"beauty", "electronics", "fashion", "garden", "grocery"}
    assert {len(product.product_category.split(" › ")) for product in products} == {3, 4}
    tags = [product.price_tag for product in products]
    assert 0.03 < tags.count("$100.0") / 2_000 < 0.08
    assert 0.11 < sum(" to " in tag for tag in tags) / 2_000 < 0.19
    assert {len(goal.attributes) for goal in goals} == {2, 3, 4}
    assert {len(goal.options) for goal in goals} == {0, 1, 2, 3}
    by_asin = {product.asin: product for product in products}
    assert any(set(goal.attributes) - set(by_asin[goal.asin].attributes) for goal in goals)


def test_a_catalogue_is_for_everyone_to_read_and_nobody_to_write(tmp_path: Path) -> None:
    """A read-only volume can't be had in a test: nothing may be changed in the folder, which is as good."""
    make(files_in(written(tmp_path / "files", PRODUCTS, {"A0": [wish("zero")]})), tmp_path / "made", LEXICAL)

    def state() -> list[tuple[Path, int, int]]:
        found = sorted((tmp_path / "made").rglob("*"))
        return [(path, path.stat().st_mode, path.stat().st_mtime_ns) for path in found]

    before = state()
    assert all(mode & 0o444 == 0o444 for _, mode, _ in before)
    with opened(tmp_path / "made") as shop:
        assert shop.search.find("table").hits
    assert state() == before

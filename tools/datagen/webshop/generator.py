"""Generates catalogues of any size in the published format; their content depends only on size and seed."""

import gzip
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from itertools import chain, repeat
from pathlib import Path
from typing import IO, NamedTuple

from environments.webshop.catalogue.published import INVENTED
from tools.datagen.webshop.words import AISLES, COLOURS, FILLERS, PACKS, PRAISE, SYLLABLES, WISHES, Aisle

LARGE = 10_000
"""Number of products from which there are 300 kinds instead of 60."""
SHARE_BAD = 0.02
_ASINS = 36**8
_STRIDE = 1_000_000_007
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class ProductKind(NamedTuple):
    """A kind of product: the leaf of a category path."""

    category: str
    group: str
    name: str
    head: str


class Made(NamedTuple):
    """A generated product, as in the published files."""

    record: dict[str, object]
    attributes: tuple[str, ...]
    wish: Callable[[], dict[str, object]]
    """Draws an instruction that the product fulfils; to be called once at most."""


def write(folder: Path, products: int, goals: int, seed: int = 0, *, compress: bool = False) -> None:
    """Writes the three files with these numbers of usable products and goals, and some unusable records.

    Raises ValueError if there are more goals than products.
    """
    if goals > products:
        raise ValueError(f"goals: {goals} for {products} products; there is at most one for each")
    wished = frozenset(random.Random(f"{seed} goals").sample(range(products), goals))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / INVENTED).write_text(f"Made by Proctor: {products} products, {goals} goals, seed {seed}.\n")
    kinds = product_kinds(large=products >= LARGE)
    with ExitStack() as stack:
        write_item, write_attributes, write_goal = (
            stack.enter_context(_json_file(folder / f"{name}.json", marks, compress=compress))
            for name, marks in (("items_shuffle", "[]"), ("items_ins_v2", "{}"), ("items_human_ins", "{}"))
        )
        for position in range(products):
            made = product(position, kinds, products, seed)
            for record in _with_bad(made.record, position, seed):
                write_item(json.dumps(record))
            asin = json.dumps(made.record["asin"])
            write_attributes(f"{asin}: {json.dumps({'attributes': made.attributes})}")
            if position in wished:
                write_goal(f"{asin}: {json.dumps([made.wish()])}")


def product(position: int, kinds: Sequence[ProductKind], products: int, seed: int) -> Made:
    """The product at a position. The model number in its title is unique, so a search for the title finds it."""
    dice = random.Random(f"{seed} {position}")
    kind = kinds[dice.randrange(len(kinds))]
    aisle = AISLES[kind.category]
    phrases = dice.sample(aisle.attributes, dice.randint(4, 7))
    titled, described = phrases[: dice.randint(2, 4)], phrases[2:]
    options = _options(aisle, dice)
    brand = _brand(dice.randrange(max(20, products // 5)))
    model = f"{dice.choice('abcdefghjkmnprstvwxz')}{dice.choice('bcdfghjkmnpqrtvwxz')}{position}".upper()
    shown = dice.choice([*options.values()])[0] if options else dice.choice(PACKS)
    title = f"{brand} {model} {', '.join(titled).title()} {kind.name.title()}, {shown}"
    record: dict[str, object] = {
        "asin": _asin(position, seed),
        "name": title,
        "category": kind.category,
        "query": kind.name.capitalize(),
        "product_category": " › ".join(_path(kind, aisle)),
        "pricing": _pricing(dice),
        "full_description": _prose(kind.name, described, dice),
        "small_description": [phrase.capitalize() for phrase in _praise(kind.name, phrases[::-1], dice)],
        "customization_options": _written(options, dice),
        "images": [],
        "brand": f"Brand: {brand}",
    }
    listed = tuple(phrases[: dice.randint(2, len(phrases))])
    return Made(record=record, attributes=listed, wish=lambda: _wish(kind, phrases, options, dice))


def product_kinds(*, large: bool) -> list[ProductKind]:
    """60 kinds, or 300 with their modified forms."""
    plain = [
        ProductKind(category, group, head, head)
        for category, aisle in AISLES.items()
        for group, heads in aisle.groups.items()
        for head in heads
    ]
    if not large:
        return plain
    modified = [
        ProductKind(kind.category, kind.group, f"{modifier} {kind.head}", kind.head)
        for kind in plain
        for modifier in AISLES[kind.category].modifiers
    ]
    return plain + modified


def _path(kind: ProductKind, aisle: Aisle) -> Iterator[str]:
    """The category path of a kind, three to five steps."""
    yield aisle.root
    yield kind.group
    if " " in kind.head:
        yield f"All {kind.head.split()[-1].title()}"
    yield kind.head.title()
    if kind.name != kind.head:
        yield kind.name.title()


def _brand(number: int) -> str:
    """A different word for each number."""
    word = ""
    number += len(SYLLABLES)
    while number:
        number, at = divmod(number, len(SYLLABLES))
        word += SYLLABLES[at]
    return word.capitalize()


def _asin(position: int, seed: int) -> str:
    number, asin = ((position + 1) * _STRIDE + seed) % _ASINS, ""
    for _ in range(8):
        number, at = divmod(number, 36)
        asin += _DIGITS[at]
    return f"B0{asin}"


def _pricing(dice: random.Random) -> str:
    price, chance = dice.choice((9, 25, 60, 180)) * dice.uniform(0.5, 2.0), dice.random()
    if chance < 0.05:
        return ""
    return f"${price:.2f} - ${price * dice.uniform(1.1, 2.0):.2f}" if chance < 0.2 else f"${price:.2f}"


def _options(aisle: Aisle, dice: random.Random) -> dict[str, list[str]]:
    """None or some of the options colour, size and pack, each with its values."""
    pools = {"Color": COLOURS, "Size": aisle.sizes, "Pack": PACKS}
    names = dice.sample(list(pools), dice.choice((0, 2, 2, 3, 3, 3)))
    return {name: dice.sample(pools[name], dice.randint(2, 5)) for name in names}


def _written(options: dict[str, list[str]], dice: random.Random) -> object:
    """The options in the published form; rarely with an additional one that has no list of values."""
    written: dict[str, object] = {
        name: [{"value": value, "image": None} for value in values] for name, values in options.items()
    }
    if dice.random() < SHARE_BAD / 4:
        written["Style"] = None
    return written or ""


def _prose(kind: str, phrases: Sequence[str], dice: random.Random) -> str:
    lines = [*_praise(kind, phrases, dice), *(line.format(kind=kind) for line in dice.sample(FILLERS, 4))]
    dice.shuffle(lines)
    return ". ".join(lines) + "."


def _praise(kind: str, phrases: Sequence[str], dice: random.Random) -> list[str]:
    return [dice.choice(PRAISE).format(kind=kind, phrase=phrase) for phrase in phrases]


def _wish(
    kind: ProductKind, phrases: Sequence[str], options: dict[str, list[str]], dice: random.Random
) -> dict[str, object]:
    wanted = dice.sample(phrases, dice.randint(2, min(4, len(phrases))))
    named = dice.sample(list(options), dice.randint((len(options) + 1) // 2, len(options)))
    chosen = [dice.choice(options[name]).replace("/", " | ").lower() for name in named]
    with_options = "".join(f", {name.lower()} {value}" for name, value in zip(named, chosen, strict=True))
    attributes = f"{', '.join(wanted[:-1])} and {wanted[-1]}"
    instruction = dice.choice(WISHES).format(
        a=_article(kind.name), kind=kind.name, attributes=attributes, options=with_options
    )
    return {"instruction": instruction, "instruction_attributes": wanted, "instruction_options": chosen}


def _article(kind: str) -> str:
    if kind.endswith("s"):
        return "some"
    return "an" if kind[0] in "aeiou" else "a"


def _with_bad(record: dict[str, object], position: int, seed: int) -> Iterator[dict[str, object]]:
    """Yields the record, rarely with an unusable price, or followed by a record that loaders must drop."""
    dice = random.Random(f"{seed} {position} bad")
    chance = dice.random() / SHARE_BAD
    if chance < 0.25:
        record = {**record, "pricing": "Currently unavailable"}
    yield record
    if 0.25 <= chance < 0.75:
        unusable = ("nan", f"{record['asin']}X", record["asin"])
        yield {**record, "asin": dice.choice(unusable)}


@contextmanager
def _json_file(path: Path, marks: str, *, compress: bool) -> Iterator[Callable[[str], object]]:
    """Writes a JSON array or object: yields what writes an entry, on a line of its own.

    gzip has no date, so equal content gives equal files.
    """
    with ExitStack() as stack:
        if compress:
            raw = stack.enter_context(path.with_name(f"{path.name}.gz").open("wb"))
            packed = stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
            file: IO[str] = stack.enter_context(TextIOWrapper(packed, encoding="utf-8"))
        else:
            file = stack.enter_context(path.open("w", encoding="utf-8"))
        file.write(marks[0])
        before = chain(["\n"], repeat(",\n"))
        yield lambda entry: file.write(next(before) + entry)
        file.write(f"\n{marks[1]}\n")

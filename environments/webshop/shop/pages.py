"""The pages of the shop as texts and clickables (WebShop's templates without HTML)."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from environments.webshop.catalogue.product import Product

PER_PAGE = 10
SEARCH, BACK, PREVIOUS, NEXT, BUY = "Search", "Back to Search", "< Prev", "Next >", "Buy Now"
SubPage = Literal["Description", "Features", "Reviews"]
SUB_PAGES: tuple[SubPage, ...] = get_args(SubPage)


class Button(NamedTuple):
    """A button; `text` is its label."""

    text: str


class Link(NamedTuple):
    """A link to a product; `text` is its asin."""

    text: str


class Choice(NamedTuple):
    """A value of an option."""

    option: str
    text: str


Piece = str | Button | Link | Choice
"""A piece of a page's text; all pieces but plain strings can be clicked."""


class Page(NamedTuple):
    """The pieces of a page, in order."""

    pieces: tuple[Piece, ...]
    search_bar: bool = False

    def text(self) -> str:
        """The visible text, joined as published."""
        texts = (piece if isinstance(piece, str) else piece.text for piece in self.pieces)
        return " [SEP] ".join(text.strip() for text in texts if text and not (text.isspace() and "\n" in text))

    def clickables(self, *, qualify_shared: bool = False) -> dict[str, Button | Link | Choice]:
        """Clickable pieces by name: buttons and links in lower case, then option values.

        Of a value that two options share, only the last one is kept, and a value that is named as a button is that
        button, as published; with `qualify_shared` all are kept, and such values named `option: value`.
        """
        named: dict[str, Button | Link | Choice] = {}
        for kind in (Button, Link):
            named |= {piece.text.lower(): piece for piece in self.pieces if isinstance(piece, kind)}
        choices = [piece for piece in self.pieces if isinstance(piece, Choice)]
        shared = _shared(choices) | {SEARCH.lower(), *named} if qualify_shared else frozenset()
        named |= {
            f"{choice.option}: {choice.text}" if choice.text in shared else choice.text: choice
            for choice in choices
            if qualify_shared or choice.text not in named
        }
        return named


def _shared(choices: Sequence[Choice]) -> frozenset[str]:
    """The values of more than one option."""
    options: dict[str, set[str]] = {}
    for choice in choices:
        options.setdefault(choice.text, set()).add(choice.option)
    return frozenset(value for value, names in options.items() if len(names) > 1)


def search_page(instruction: str) -> Page:
    """The search page, on which every session starts."""
    return Page(("WebShop", "Instruction:", instruction, Button(SEARCH)), search_bar=True)


def result_page(instruction: str, number: int, total: int, products: Sequence[Product], *, more: bool) -> Page:
    """A page of results, with its number from 1; `more`: whether it has a button to the next page."""
    pieces: list[Piece] = [*_head(instruction), f"Page {number} (Total results: {total})"]
    if number > 1:
        pieces.append(Button(PREVIOUS))
    if more:
        pieces.append(Button(NEXT))
    for product in products:
        pieces += [Link(product.asin), product.title, product.price_tag]
    return Page(tuple(pieces))


def item_page(instruction: str, product: Product) -> Page:
    """A product's page."""
    options: list[Piece] = []
    for name, values in product.options.items():
        options += [name, *(Choice(name, value) for value in values)]
    return Page(
        (
            *_head(instruction),
            Button(PREVIOUS),
            *options,
            product.title,
            f"Price: {product.price_tag}",
            "Rating: N.A.",
            *map(Button, SUB_PAGES),
            Button(BUY),
        )
    )


def sub_page(instruction: str, product: Product, name: SubPage) -> Page:
    """The page of a product's description, features or reviews; there are no reviews."""
    texts: Mapping[SubPage, tuple[str, ...]] = {
        "Description": (product.description,),
        "Features": tuple(f" {bullet} " for bullet in product.bullets),
        "Reviews": (),
    }
    return Page((*_head(instruction), Button(PREVIOUS), *texts[name]))


def _head(instruction: str) -> tuple[Piece, ...]:
    return "Instruction:", instruction, Button(BACK)

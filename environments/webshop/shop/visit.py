"""A visit to the shop: places, their pages, and the effects of actions."""

from collections.abc import Mapping

from pydantic import Field

from environments.webshop.reply import ShopMove
from environments.webshop.scoring import Profile
from environments.webshop.shop import pages
from environments.webshop.shop.pages import (
    BACK,
    BUY,
    NEXT,
    PER_PAGE,
    PREVIOUS,
    SEARCH,
    Button,
    Choice,
    Link,
    Page,
    SubPage,
)
from environments.webshop.shop.shop import Shop
from proctor.types import Value

MAX_KEYWORDS = 1_000
"""Limit of characters read from a search."""


class Place(Value):
    """A visitor's place in the shop; the default is the search page."""

    keywords: str | None = None
    hits: tuple[int, ...] = ()
    """Positions of the products found, best first."""
    number: int = Field(default=1, ge=1)
    """Number of the page of results."""
    product: int | None = None
    """Position of the product whose page is open."""
    sub_page: SubPage | None = None
    chosen: Mapping[str, str] = Field(default_factory=dict)
    """The chosen value of each option."""
    bought: bool = False
    missing: int = 0
    """Products left out of the hits because the database lacks them."""


class Visit:
    """The rules of a shop for one instruction. Calls read from disk and may take milliseconds."""

    def __init__(self, shop: Shop, instruction: str, profile: Profile) -> None:
        self._shop = shop
        self._instruction = instruction
        self._strict = profile == "strict"
        self._latest: tuple[object, Page] | None = None
        """What the latest page shows, and the page: it is asked for once more when the visitor leaves it."""

    def page(self, place: Place) -> Page:
        """The page at a place. Raises LookupError if its product is not in the catalogue."""
        shown, latest = (place.product, place.sub_page, place.keywords, place.number, place.hits), self._latest
        if latest is None or latest[0] != shown:
            latest = self._latest = shown, self._page(place)
        return latest[1]

    def _page(self, place: Place) -> Page:
        if place.product is not None:
            product = self._shop.store.product(place.product)
            if place.sub_page is not None:
                return pages.sub_page(self._instruction, product, place.sub_page)
            return pages.item_page(self._instruction, product)
        if place.keywords is None:
            return pages.search_page(self._instruction)
        end = place.number * PER_PAGE
        products = self._shop.store.products(place.hits[end - PER_PAGE : end])
        more = not self._strict or end < len(place.hits)
        return pages.result_page(self._instruction, place.number, len(place.hits), products, more=more)

    def clickables(self, page: Page) -> dict[str, Button | Link | Choice]:
        """The clickable pieces of a page by name."""
        return page.clickables(qualify_shared=self._strict)

    def after(self, place: Place, move: ShopMove) -> Place | None:
        """The place after an action; None if the action has no effect."""
        page = self.page(place)
        if move.name == "search" and (page.search_bar or not self._strict):
            return self._found(move.argument)
        clickables = self.clickables(page)
        if self._strict and move.longer in clickables:
            move = ShopMove("click", move.longer)
        if move.name != "click" or move.argument == SEARCH.lower() or move.argument not in clickables:
            return None
        return self._clicked(place, clickables[move.argument])

    def _found(self, keywords: str) -> Place:
        keywords = " ".join(keywords[:MAX_KEYWORDS].split())
        found = self._shop.search.find(keywords)
        return Place(keywords=keywords, hits=tuple(hit.position for hit in found.hits), missing=found.missing)

    def _clicked(self, place: Place, target: Button | Link | Choice) -> Place:
        if isinstance(target, Choice):
            return place.model_copy(update={"chosen": {**place.chosen, target.option: target.text}})
        if isinstance(target, Link):
            return place.model_copy(update={"product": self._shop.store.position(target.text)})
        if target.text == BACK:
            return Place()
        if target.text == BUY:
            return place.model_copy(update={"bought": True})
        if target.text == NEXT:
            return place.model_copy(update={"number": place.number + 1})
        if target.text == PREVIOUS:
            return _previous(place)
        return place.model_copy(update={"sub_page": target.text})


def _previous(place: Place) -> Place:
    if place.sub_page is not None:
        return place.model_copy(update={"sub_page": None})
    if place.product is not None:
        return place.model_copy(update={"product": None, "chosen": {}})
    return place.model_copy(update={"number": place.number - 1})

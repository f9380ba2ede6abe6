"""Converts published records to products by the published loader's rules. Records that would crash it are counted."""

import functools
import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from math import isfinite

from environments.webshop.catalogue.nouns import NounExtractor
from environments.webshop.catalogue.product import Product, price_between

MAX_ASIN = 10
UNPRICED = 100.0
"""Price in dollars of a product without a price."""
NO_ATTRIBUTES = ("DUMMY_ATTR",)
_NOT_NUMERIC = re.compile(r"[^\d.]", re.ASCII)


class Importer:
    """Makes products from records, and counts their problems."""

    def __init__(self, nouns: NounExtractor, seed: int) -> None:
        self.problems: Counter[str] = Counter()
        self._nouns = nouns
        self._seed = seed
        self._seen: set[str] = set()

    def product(self, record: Mapping[str, object], attributes: Mapping[str, object], position: int) -> Product | None:
        """The product of a record, at a position in the catalogue; None if its asin is unusable or a repeat."""
        asin = text(record.get("asin"))
        if not self._usable(asin):
            return None
        tag, prices = self._prices(record.get("pricing"))
        price = prices[0] if len(prices) == 1 else price_between(*prices, asin, position, self._seed)
        title = text(record.get("name"))
        return Product(
            asin=asin,
            title=title,
            description=text(record.get("full_description")),
            bullets=_bullets(record.get("small_description")),
            price_tag=tag,
            price=price,
            category=text(record.get("category")),
            query=text(record.get("query")).lower().strip(),
            product_category=text(record.get("product_category")),
            options=self._options(record.get("customization_options")),
            attributes=self._attributes(attributes),
            nouns=self._nouns.nouns(title),
            image=self._image(record.get("images")),
        )

    def _usable(self, asin: str) -> bool:
        problem = None
        if asin in ("", "nan"):
            problem = "asin missing"
        elif len(asin) > MAX_ASIN:
            problem = "asin too long"
        elif asin in self._seen:
            problem = "asin seen before"
        if problem:
            self.problems[f"dropped: {problem}"] += 1
            return False
        self._seen.add(asin)
        return True

    def _prices(self, pricing: object) -> tuple[str, tuple[float] | tuple[float, float]]:
        """The price tag, and the price or both ends of the price range in dollars."""
        written = text(pricing)
        if written:
            try:
                prices = [float(Decimal(_NOT_NUMERIC.sub("", part))) for part in written.split("$")[1:]]
            except InvalidOperation:
                prices = []
            if len(prices) == 1 and isfinite(prices[0]):
                return f"${prices[0]}", (prices[0],)
            if len(prices) > 1 and all(map(isfinite, prices)):
                return f"${prices[0]} to ${prices[1]}", (prices[0], prices[1])
            self.problems["price unreadable"] += 1
        return f"${UNPRICED}", (UNPRICED,)

    def _options(self, written: object) -> dict[str, tuple[str, ...]]:
        if not isinstance(written, dict):
            if written:
                self.problems["options unreadable"] += 1
            return {}
        options = {}
        for name, values in written.items():
            if isinstance(values, list):
                options[text(name).lower()] = tuple(self._values(values))
            else:
                self.problems["option without values"] += 1
        return options

    def _values(self, written: list[object]) -> list[str]:
        values = [entry["value"] for entry in written if isinstance(entry, dict) and "value" in entry]
        if len(values) < len(written):
            self.problems["option value unreadable"] += len(written) - len(values)
        return [_option(value) if isinstance(value, str) else _option(text(value)) for value in values]

    def _attributes(self, entry: Mapping[str, object]) -> tuple[str, ...]:
        found = entry.get("attributes")
        return tuple(map(text, found)) if isinstance(found, list) else NO_ATTRIBUTES

    def _image(self, images: object) -> str:
        if isinstance(images, list) and all(isinstance(image, str) for image in images):
            return text(images[0]) if images else ""
        if images:
            self.problems["images unreadable"] += 1
        return ""


def text(value: object) -> str:
    """A published value as text that UTF-8 can encode; empty for null."""
    if isinstance(value, str) and value.isascii():
        return value
    return "" if value is None else str(value).encode(errors="replace").decode()


@functools.lru_cache(maxsize=1 << 12)
def _option(value: str) -> str:
    """An option's value as the shop shows it; products share most of them."""
    return text(value).strip().replace("/", " | ").lower()


def _bullets(written: object) -> tuple[str, ...]:
    lines = written if isinstance(written, list) else [written]
    return tuple(map(text, lines)) or ("",)

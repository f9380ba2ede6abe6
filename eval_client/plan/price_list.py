"""The shipped list of prices of common models."""

import datetime
import functools
import re
from pathlib import Path

from eval_client.core.spend import Price
from proctor.config.yaml import load
from proctor.types import Value

_FILE = Path(__file__).with_name("prices.yaml")
_VERSION = re.compile(r"([-@]\d{4}-?\d{2}-?\d{2}|-latest|-preview)$")
"""What a name may have behind the listed one: a date, `-latest`, `-preview`."""


class PriceList(Value):
    """Prices by the models' names."""

    date: datetime.date
    """When the prices were looked up."""
    currency: str
    models: dict[str, Price]

    def price(self, model: str) -> Price | None:
        """The price of a model; its name may have a provider before it, `openai/gpt-4.1`, and a date behind it."""
        name = model.rpartition("/")[2]
        return self.models.get(name) or self.models.get(_VERSION.sub("", name))


@functools.cache
def shipped_prices() -> PriceList:
    """The list that Proctor ships."""
    return load(_FILE, PriceList)

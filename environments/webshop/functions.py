"""The functions of protocol `tools`; names and parameters are the published ones (AgentBench FC)."""

from environments.webshop.reply import ShopMove
from proctor.tools import Function, Toolset, arguments_schema


def _function(name: str, description: str, parameter: str, about: str, move: str) -> Function[ShopMove | None]:
    """A function of one text, which asks for a move of this name."""
    return Function(
        name,
        description,
        arguments_schema(**{parameter: {"type": "string", "description": about}}),
        lambda given: ShopMove(move, str(given[parameter]).lower()),
        lambda asked: {parameter: asked.argument} if asked is not None and asked.name == move else None,
    )


TOOLSET = Toolset[ShopMove | None](
    (
        _function(
            "search_action",
            "Searches the shop and shows the first page of the products found.",
            "keywords",
            "Words that describe the product.",
            "search",
        ),
        _function(
            "click_action",
            "Clicks a button, a product or a value of an option.",
            "value",
            "One of the clickable values in the list of available actions, as it is written there.",
            "click",
        ),
    )
)

"""Policies that say the same whatever they are shown, to see what a world makes of it."""

from environments.mind2web import reply as mind2web
from environments.mind2web.prompt import LETTERS, NONE
from environments.webshop.policies import spelled
from environments.webshop.reply import ShopMove
from proctor.environment import Policy
from proctor.types import Action


def always(text: str) -> Policy:
    """Every reply is this text."""
    return lambda conversation, transcript: Action(content=text)


garbage = always("I would rather go fishing.")
"""Holds no action of any world."""
looker = always(spelled(ShopMove("search", "something nice")))
"""Searches the shop in every round."""
all_none = always(mind2web.write(NONE))
"""Answers A, none of the above."""
first_click = always(mind2web.write(LETTERS[1], "CLICK"))
"""Clicks the first choice of a page."""

"""Scripted policies without memory: the reference, a weak heuristic and a random one."""

import ast
import json
import random
from collections.abc import Sequence
from typing import NamedTuple

from environments.webshop import prompt
from environments.webshop.catalogue.product import Goal
from environments.webshop.reply import ShopMove
from environments.webshop.shop.pages import BACK, BUY, NEXT, PREVIOUS
from proctor.environment import Policy
from proctor.types import Action, Message

_ACTIONS = "Available Actions:\n"
_BUTTONS = frozenset(text.lower() for text in (BACK, BUY, NEXT, PREVIOUS))
_EXAMPLE = sum(message.role == "assistant" for message in prompt.opening())
"""Replies of the opening in protocol `text`; that of `tools`, which begins with a system message, has none."""


class _Seen(NamedTuple):
    """The actions of the last observation, and the agent's own replies."""

    search_bar: bool
    clickables: tuple[str, ...]
    replies: tuple[str, ...]


def gold(goal: Goal) -> Policy:
    """Searches for the title of the goal's product, pages to it, clicks the wanted options, and buys it."""
    return buyer(goal.asin, goal.name, goal.options)


def buyer(asin: str, title: str, options: Sequence[str]) -> Policy:
    """Buys the product with a known asin, with these option values."""

    def act(_: str, transcript: Sequence[Message]) -> Action:
        seen = _seen(transcript)
        if seen.search_bar:
            return _search(title)
        if asin.lower() in seen.clickables:
            return _click(asin.lower())
        if BUY.lower() not in seen.clickables:
            return _click(NEXT.lower() if NEXT.lower() in seen.clickables else BACK.lower())
        wanted = (name for option in options for name in seen.clickables if _names(name, option))
        return next((_click(name) for name in wanted if _click(name).content not in seen.replies), _click(BUY.lower()))

    return act


def first_hit(goal: Goal) -> Policy:
    """Searches for the instruction, opens the first product, and buys it."""

    def act(_: str, transcript: Sequence[Message]) -> Action:
        seen = _seen(transcript)
        if seen.search_bar:
            return _search(goal.instruction)
        if BUY.lower() in seen.clickables:
            return _click(BUY.lower())
        return _click(next((name for name in seen.clickables if name not in _BUTTONS), BACK.lower()))

    return act


def chance(goal: Goal, sample: str, seed: int) -> Policy:
    """Searches for a random word of the instruction on the search page, and clicks at random elsewhere."""

    def act(_: str, transcript: Sequence[Message]) -> Action:
        seen = _seen(transcript)
        dice = random.Random(f"{sample} {seed} {len(seen.replies)}")
        if seen.search_bar:
            return _search(dice.choice(goal.instruction.split() or ["anything"]))
        return _click(dice.choice(seen.clickables))

    return act


def _seen(transcript: Sequence[Message]) -> _Seen:
    example = 0 if transcript[0].role == "system" else _EXAMPLE
    replies = [message.content for message in transcript if message.role == "assistant"][example:]
    listed = transcript[-1].content.rpartition(_ACTIONS)[2]
    actions = ast.literal_eval(listed) if listed.startswith("{'") else json.loads(listed)
    return _Seen(actions["has_search_bar"], tuple(actions["clickables"]), tuple(replies))


def _names(clickable: str, option: str) -> bool:
    """Whether a clickable is an option's value, with or without the option's name before it."""
    return clickable == option or clickable.endswith(f": {option}")


def _search(keywords: str) -> Action:
    return _said(ShopMove("search", keywords.replace("[", " ").replace("]", " ").strip() or "anything"))


def _click(name: str) -> Action:
    return _said(ShopMove("click", name))


def _said(move: ShopMove) -> Action:
    return Action(content=spelled(move))


def spelled(move: ShopMove | None) -> str:
    """The reply in which the policies ask for a move."""
    if move is None:
        return ""
    thought = "I look for it." if move.name == "search" else "This takes me on."
    return prompt.reply_text(thought, f"{move.name}[{move.argument}]")

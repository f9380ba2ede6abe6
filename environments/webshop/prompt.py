"""The agent's messages: the task, one solved example, and each page with its actions.

They have the content of AgentBench's prompts (arXiv 2308.03688, Appendix H.2) in our own words. The forms of replies
and observations and the course of the example (search, results, item, option, purchase) are the published ones.
Protocol `tools` has no example, as in AgentBench FC.
"""

import json
from collections.abc import Sequence

from environments.webshop.scoring import Profile
from environments.webshop.shop.pages import Page
from proctor.published import Source
from proctor.tools import Protocol
from proctor.types import Message

INSTRUCTION = """\
You are shopping on the web. I give you an instruction that says what to buy, and you have to follow it.
In every round you are shown an observation and a list of the actions that are available; your reply has to be an \
action that fits them.
Where a search bar is available you can search; among the clickable values you can click one.
An action has one of these forms:
search[keywords]
click[value]
An action that is not valid changes nothing. The keywords of a search are up to you, so choose them with care; the \
value of a click must be one of the values in the list of available actions.
Reply in this form:

Thought:
Your reasoning about what to do next

Action:
click[something]"""

CALLS_INSTRUCTION = """\
You are shopping on the web. I give you an instruction that says what to buy, and you have to follow it.
In every round you are shown an observation and a list of the actions that are available; you have to call a function \
that fits them.
Where a search bar is available you can call search_action; among the clickable values you can click one by \
click_action.
A call that is not valid changes nothing. The keywords of a search are up to you, so choose them with care; the value \
of a click must be one of the values in the list of available actions.
Think first about what to do next, then call exactly one function. Call one in every round, even if you have a \
question: nobody answers questions, and you need no permission to use any of the functions."""

PROMPT = Source(
    file="AgentBench v0.2's src/server/tasks/webshop/__init__.py",
    fingerprints=frozenset(("0b2311d79879a35b2dd1afe8a798ada6",)),
)
"""The published instruction and example, which users supply."""

CONSENT = "Understood."

_GOAL = "i need a vegan soy wax candle with a lavender scent, 7 ounce, and price lower than 30.00 dollars"
_RESULTS = (
    f"Instruction: [SEP] {_GOAL} [SEP] Back to Search [SEP] Page 1 (Total results: 50) [SEP] Next > [SEP] B07WAXC3QN "
    "[SEP] Emberlee Soy Wax Candle, Vegan and Hand Poured, in a Glass Jar [SEP] $18.5 [SEP] B08TINL4M2 [SEP] "
    "Hearthwick Paraffin Candle Set of 3, Unscented [SEP] $12.99 [SEP] B06GLOW7RS [SEP] Noctelle Beeswax Taper "
    "Candles, 10 Inch [SEP] $24.0 to $31.0"
)
_ITEM = (
    f"Instruction: [SEP] {_GOAL} [SEP] Back to Search [SEP] < Prev [SEP] scent [SEP] vanilla [SEP] lavender [SEP] "
    "unscented [SEP] size [SEP] 4 ounce [SEP] 7 ounce [SEP] Emberlee Soy Wax Candle, Vegan and Hand Poured, in a Glass "
    "Jar [SEP] Price: $18.5 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
)
_ON_RESULTS = "{'has_search_bar': False, 'clickables': ['...']}"
_ON_ITEM = "{'has_search_bar': False, 'clickables': ['...', 'lavender', '7 ounce', 'buy now']}"
_EXAMPLE = (
    (
        f"WebShop [SEP] Instruction: [SEP] {_GOAL} [SEP] Search",
        "{'has_search_bar': True, 'clickables': ['...']}",
        "The kind of product and its main properties make good keywords.",
        "search[vegan soy wax candle lavender 7 ounce]",
    ),
    (
        _RESULTS,
        _ON_RESULTS,
        "The first product is a vegan candle of soy wax within the price limit. Its page will show the scents.",
        "click[b07waxc3qn]",
    ),
    (
        _ITEM,
        _ON_ITEM,
        "The scent lavender is there, and so is the size of 7 ounce. I choose the scent first.",
        "click[lavender]",
    ),
    (
        _ITEM,
        _ON_ITEM,
        "Now the size; after that I can buy it.",
        "click[7 ounce]",
    ),
)


def opening(protocol: Protocol = "text") -> tuple[Message, ...]:
    """The messages before the first round: the task; in `text` also a consent, and an example of four rounds."""
    if protocol == "tools":
        return (Message(role="system", content=CALLS_INSTRUCTION),)
    messages = [Message(role="user", content=INSTRUCTION), Message(role="assistant", content=CONSENT)]
    for text, actions, thought, action in _EXAMPLE:
        messages.append(Message(role="user", content=_round(text, actions)))
        messages.append(Message(role="assistant", content=reply_text(thought, action)))
    return tuple(messages)


def observation(page: Page, clickables: Sequence[str], profile: Profile, told: str | None = None) -> str:
    """The message of a round. Its last line is a Python literal in `compat`, JSON in `strict`.

    `told` stands in place of the page's text.
    """
    actions = {"has_search_bar": page.search_bar, "clickables": list(clickables)}
    return _round(
        told or page.text(), repr(actions) if profile == "compat" else json.dumps(actions, ensure_ascii=False)
    )


def reply_text(thought: str, action: str) -> str:
    """A reply in the requested form."""
    return f"Thought:\n{thought}\n\nAction:\n{action}"


def _round(text: str, actions: str) -> str:
    return f"Observation:\n{text}\n\nAvailable Actions:\n{actions}"

"""WebShop (Yao et al., arXiv 2207.01206) as AgentBench plays it (arXiv 2308.03688, Appendix H)."""

import asyncio
import functools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from pydantic import Field, JsonValue, PrivateAttr, model_validator

from environments.webshop import policies, prompt, reply, shipped
from environments.webshop.catalogue.check_goals import other_goals
from environments.webshop.catalogue.make import DATABASE
from environments.webshop.catalogue.product import Goal
from environments.webshop.catalogue.store import CatalogueStore, Meta
from environments.webshop.functions import TOOLSET
from environments.webshop.prompt import PROMPT
from environments.webshop.reply import ShopMove
from environments.webshop.scoring import Profile
from environments.webshop.session import ShopSession
from environments.webshop.shop import shop
from environments.webshop.shop.shop import Shop
from environments.webshop.summary import summarize
from proctor.digest import json_digest
from proctor.environment import Agent, Environment, EnvironmentFault, Policy
from proctor.published import AGENTBENCH_SAMPLING, Opening
from proctor.tools import OWN_FUNCTIONS, CallReader, Protocol, ReplyReader, TextReader, in_tools, parsed_action
from proctor.types import Action, Finish, Message, ParsedAction, Summary

ROUNDS: Mapping[Protocol, int] = {"text": 10, "tools": 20}
"""The most rounds, as in AgentBench v0.2 and in AgentBench FC."""
PUBLISHED_PRODUCTS = 1_000_000
"""The full published catalogue has more products; smaller catalogues have other goal indices and scores."""
PUBLISHED_GOALS = 12_087
PUBLISHED_SPLITS = ((0, 200), (200, 280), (0, 500))
PUBLISHED_NOUNS = "en_core_web_lg"
USUAL_CANDIDATES = 1_000
"""Number of candidates that gives the hits of an exact search in the full catalogue."""
_DEMO_GOALS = 15
_REVISIONS: Mapping[Profile, str] = {"compat": "3", "strict": "4"}
"""Raise a profile's with every change to what a trial shows or how it is scored."""
_PREFIX = "goal-"


class WebShop(Environment):
    """The agent searches a shop, chooses options, and buys the product that fits an instruction best."""

    data: Path | None = None
    """Folder of a catalogue made by `proctor webshop index`; None for the generated one shipped with Proctor."""
    profile: Profile = "compat"
    """`compat` plays as the published code does, `strict` with its errors repaired."""
    protocol: Protocol = Field(default="text", exclude_if=lambda protocol: protocol == "text")
    """`text`: a reply's text holds the action; `tools`: the agent calls functions."""
    goals: tuple[int, int] | None = None
    """Indices of the goals to play: the first, and the end (exclusive); None for all."""
    candidates: int | None = Field(default=None, ge=50, le=1_000_000)
    """Number of documents that a search scores; None for 500, or 1,000 if there are more than 100,000 products."""
    prompts: Path | None = None
    """A file with another instruction and example, such as AgentBench's; None for our own."""
    cache: Path | None = None
    """Folder for the shipped catalogue; None for `proctor/webshop` in the user's cache folder."""

    operational: ClassVar[frozenset[str]] = frozenset({"cache"})
    capacity: ClassVar[int] = 32

    _shop: Shop | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _fields_fit_together(self) -> "WebShop":
        if self.protocol == "tools" and self.prompts is not None:
            raise ValueError("prompts: the file's prompt is for protocol: text; leave one of the two out")
        return self

    @property
    def max_turns(self) -> int:
        return ROUNDS[self.protocol]

    def samples(self) -> Sequence[str]:
        _ = self._opening  # refuses a broken file before the first trial
        return tuple(map(_name, self._range))

    def digest(self) -> str:
        fields = self.model_dump(mode="json", exclude={"data", "prompts", "cache"})
        return json_digest([_REVISIONS[self.profile], fields, self._meta, self._opening])

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        with ExitStack() as stack:
            try:
                self._shop = await asyncio.to_thread(self._opened, stack)
            except ValueError as error:
                raise EnvironmentFault(str(error)) from error
            try:
                yield
            finally:
                self._shop = None

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        index = self._index(sample)
        if self._shop is None:
            raise RuntimeError("enter the environment's lifespan before playing")
        goal = await asyncio.to_thread(self._shop.store.goal, index)
        rounds, own = ROUNDS[self.protocol], self.data is None
        return await ShopSession(
            self._shop, goal, agent, self.profile, self._opening, self._reader(), rounds, own
        ).play()

    def parse_action(self, action: Action) -> ParsedAction | None:
        return parsed_action(self._reader(), action, reply.shown)

    def cluster(self, sample: str) -> str:
        """The product that the goal was made from."""
        return self._products[self._index(sample)]

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(policies.gold(self.goal(sample)))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(policies.first_hit(self.goal(sample)))

    def random(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(policies.chance(self.goal(sample), sample, seed))

    def goal(self, sample: str) -> Goal:
        """The goal of a sample. Raises ValueError if there is no sample with this id."""
        return _goal(self._folder / DATABASE, self._index(sample))

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return summarize(finishes, self._meta, self.protocol if self.prompts is None else None)

    @classmethod
    def detect_parameters(cls) -> dict[str, JsonValue]:
        return {"goals": [0, _DEMO_GOALS]}

    def not_comparable_because(self) -> str | None:
        if self.protocol == "tools":
            return OWN_FUNCTIONS
        if self.data is None or self._meta.invented:
            return "the catalogue is invented; such scores are no WebShop scores"
        if self._meta.products < PUBLISHED_PRODUCTS:
            return f"the catalogue has {self._meta.products} products; the published goals need the full one"
        if self._meta.goals != PUBLISHED_GOALS:
            return f"the catalogue has {self._meta.goals} goals, the published one {PUBLISHED_GOALS}: indices differ"
        if self.goals not in PUBLISHED_SPLITS:
            return "published scores are over the goals [0, 200] (test), [200, 280] (dev) or [0, 500] (WebShop's own)"
        if self.profile != "compat":
            return f"the profile {self.profile!r} repairs faults of the published code; use compat"
        if not self._meta.nouns.startswith(f"{PUBLISHED_NOUNS} "):
            return f"nouns are found by {self._meta.nouns}, published ones by {PUBLISHED_NOUNS}; index with --nouns"
        if self.candidates is not None and self.candidates < USUAL_CANDIDATES:
            return f"a search that scores {self.candidates} documents misses hits; leave `candidates` out"
        other = PROMPT.differs(self.prompts, Opening(self._opening))
        if other is None:
            with closing(CatalogueStore(self._folder / DATABASE)) as store:
                other = other_goals(store)
        return other

    def published_sampling(self) -> Mapping[str, JsonValue]:
        return AGENTBENCH_SAMPLING

    def _reader(self) -> ReplyReader[ShopMove | None]:
        """How the replies of one session are read."""
        if self.protocol == "tools":
            return CallReader(TOOLSET, strict=self.profile != "compat")
        return TextReader(self._move)

    def _in_protocol(self, policy: Policy) -> Policy:
        """A policy written for `text`, in the protocol of this environment."""
        return in_tools(policy, self._move, policies.spelled, TOOLSET) if self.protocol == "tools" else policy

    def _move(self, text: str) -> ShopMove | None:
        return reply.read(text, self.profile)

    def _opened(self, stack: ExitStack) -> Shop:
        return stack.enter_context(shop.opened(self._folder, self.candidates))

    @cached_property
    def _folder(self) -> Path:
        return shipped.catalogue(self.cache) if self.data is None else self.data

    @cached_property
    def _opening(self) -> tuple[Message, ...]:
        return prompt.opening(self.protocol) if self.prompts is None else PROMPT.read(self.prompts).messages

    @cached_property
    def _meta(self) -> Meta:
        with closing(CatalogueStore(self._folder / DATABASE)) as store:
            return store.meta

    @cached_property
    def _products(self) -> Sequence[str]:
        """The asin of each goal's product, by the goal's index."""
        with closing(CatalogueStore(self._folder / DATABASE)) as store:
            return store.goal_products()

    @cached_property
    def _range(self) -> range:
        first, end = self.goals or (0, self._meta.goals)
        if not 0 <= first < end <= self._meta.goals:
            among = f"0 <= first < end <= {self._meta.goals}"
            raise ValueError(f"goals: [{first}, {end}] is not within the catalogue's goals; give [first, end], {among}")
        return range(first, end)

    def _index(self, sample: str) -> int:
        digits = sample.removeprefix(_PREFIX)
        index = int(digits) if digits.isascii() and digits.isdigit() else -1
        if index not in self._range or sample != _name(index):
            raise ValueError(f"no sample {sample!r}; ids look like {_name(self._range[0])}")
        return index


def _name(index: int) -> str:
    return f"{_PREFIX}{index:05d}"


@functools.lru_cache(maxsize=4096)
def _goal(database: Path, index: int) -> Goal:
    with closing(CatalogueStore(database)) as store:
        return store.goal(index)

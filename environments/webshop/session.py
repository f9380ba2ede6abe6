"""Plays one session: rounds of a page and an action, until a product is bought."""

import asyncio
from dataclasses import dataclass, field

from pydantic import JsonValue

from environments.webshop import prompt
from environments.webshop.catalogue.product import NO_LIMIT, Goal
from environments.webshop.reply import ShopMove
from environments.webshop.scoring import Profile, reward
from environments.webshop.shop.shop import Shop
from environments.webshop.shop.visit import Place, Visit
from proctor.environment import Agent, AgentStopped
from proctor.tools import ReplyReader, UnreadableCall
from proctor.types import Action, Finish, FinishReason, Message, Observation, asked_and_answered


@dataclass
class ShopSession:
    """An agent's session in the shop."""

    shop: Shop
    goal: Goal
    agent: Agent
    profile: Profile
    opening: tuple[Message, ...]
    """Messages before the first round."""
    reader: ReplyReader[ShopMove | None]
    limit: int
    """The most rounds."""
    own_data: bool
    """Whether the catalogue is Proctor's own, whose texts may be shown to others."""
    rounds: int = field(default=0, init=False)
    noops: int = field(default=0, init=False)
    missing: int = field(default=0, init=False)
    place: Place = field(default_factory=Place, init=False)

    async def play(self) -> Finish:
        """Plays until a purchase, the last round or the agent's stop, and scores the session."""
        try:
            reason = await self._play()
        except AgentStopped as stopped:
            reason = stopped.reason
        return await asyncio.to_thread(self._finish, reason)

    async def _play(self) -> FinishReason:
        visit = Visit(self.shop, self.goal.instruction, self.profile)
        messages: tuple[Message, ...] | None = (*self.opening, Message(role="user", content=self._shown(visit)))
        for _ in range(self.limit):
            reply = await self.agent.act(Observation(messages=messages, tools=self.reader.tools))
            self.rounds += 1
            messages = await asyncio.to_thread(self._step, visit, reply)
            if messages is None:
                return FinishReason.INVALID_FORMAT
            if self.place.bought:
                return FinishReason.COMPLETED
        return self.reader.limit_reason()

    def _step(self, visit: Visit, reply: Action) -> tuple[Message, ...] | None:
        """Executes the action in an agent's reply and returns the next messages; None if it holds no action."""
        parsed = self.reader.read(reply)
        (move,) = parsed.actions
        if move is None:
            return None
        if isinstance(move, UnreadableCall):
            return parsed.answered([self._shown(visit, move.why)])
        place = visit.after(self.place, move)
        self.noops += place is None
        self.missing += place is not None and move.name == "search" and place.missing
        self.place = place or self.place
        return parsed.answered([self._shown(visit)])

    def _shown(self, visit: Visit, told: str | None = None) -> str:
        page = visit.page(self.place)
        return prompt.observation(page, list(visit.clickables(page)), self.profile, told)

    def _finish(self, reason: FinishReason) -> Finish:
        meta = self.shop.store.meta
        detail: dict[str, JsonValue] = {"goal_asin": self.goal.asin, "profile": self.profile}
        detail |= {"price_seed": meta.price_seed, "nouns": meta.nouns}
        bought = ""
        metrics = self.reader.metrics() | {
            "reward": 0.0,
            "success": 0.0,
            "purchase": float(self.place.bought),
            "rounds": float(self.rounds),
            "noop_actions": float(self.noops),
            "missing_products": float(self.missing),
        }
        if self.place.bought and self.place.product is not None:
            product = self.shop.store.product(self.place.product)
            earned = reward(self.goal, product, self.place.chosen, self.profile)
            parts = earned.model_dump()
            metrics |= {name: float(value) for name, value in parts.items() if value is not None}
            metrics["success"] = float(earned.reward == 1.0)
            bought = "; ".join((product.title, *self.place.chosen.values(), f"${product.price:g}"))
            detail |= {"asin": product.asin, "price": product.price, "chosen": dict(self.place.chosen), "parts": parts}
        words = asked_and_answered(self.goal.instruction, self._wanted(), bought, redistributable=self.own_data)
        return Finish(reason=reason, score=metrics["reward"], metrics=metrics, detail=words | detail)

    def _wanted(self) -> str:
        """The product that the goal was made from, with what it asks for."""
        limit = [f"at most ${self.goal.price_upper:g}"] if self.goal.price_upper < NO_LIMIT else []
        return "; ".join((self.goal.name, *self.goal.options, *self.goal.attributes, *limit))

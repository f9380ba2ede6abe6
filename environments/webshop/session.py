"""Plays one session: at most ten rounds of a page and an action, until a product is bought."""

import asyncio
from dataclasses import dataclass, field

from pydantic import JsonValue

from environments.webshop import prompt, reply
from environments.webshop.catalogue.product import Goal
from environments.webshop.scoring import Profile, reward
from environments.webshop.shop.shop import Shop
from environments.webshop.shop.visit import Place, Visit
from proctor.environment import Agent, AgentStopped
from proctor.types import Finish, FinishReason, Message, Observation

ROUNDS = 10


@dataclass
class ShopSession:
    """An agent's session in the shop."""

    shop: Shop
    goal: Goal
    agent: Agent
    profile: Profile
    opening: tuple[Message, ...]
    """Messages before the first round."""
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
        before, shown = self.opening, self._shown(visit)
        for _ in range(ROUNDS):
            action = await self.agent.act(Observation(messages=(*before, Message(role="user", content=shown))))
            before = ()
            self.rounds += 1
            following = await asyncio.to_thread(self._step, visit, action.content)
            if following is None:
                return FinishReason.INVALID_FORMAT
            shown = following
            if self.place.bought:
                return FinishReason.COMPLETED
        return FinishReason.TURN_LIMIT

    def _step(self, visit: Visit, content: str) -> str | None:
        """Executes the action in an agent's reply and returns the next observation; None if it holds no action."""
        move = reply.read(content, self.profile)
        if move is None:
            return None
        place = visit.after(self.place, move)
        self.noops += place is None
        self.missing += place is not None and move.name == "search" and place.missing
        self.place = place or self.place
        return self._shown(visit)

    def _shown(self, visit: Visit) -> str:
        page = visit.page(self.place)
        return prompt.observation(page, list(visit.clickables(page)), self.profile)

    def _finish(self, reason: FinishReason) -> Finish:
        meta = self.shop.store.meta
        detail: dict[str, JsonValue] = {
            "goal_asin": self.goal.asin,
            "profile": self.profile,
            "price_seed": meta.price_seed,
            "nouns": meta.nouns,
        }
        metrics = {
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
            detail |= {"asin": product.asin, "price": product.price, "chosen": dict(self.place.chosen), "parts": parts}
        return Finish(reason=reason, score=metrics["reward"], metrics=metrics, detail=detail)

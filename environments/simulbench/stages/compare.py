"""Mode `compare`: the agent judges which of two models' responses is better (SimulBench's Appendix B.4)."""

import random
from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from environments.simulbench import dataset, prompt, reply, shipped
from environments.simulbench.judges import rules
from environments.simulbench.judges.interview import BAD_REPLIES, JudgeQuestion, interview
from environments.simulbench.judges.judges import Judges
from environments.simulbench.policies import always
from environments.simulbench.records import Pair
from environments.simulbench.reply import Verdict
from environments.simulbench.stage import Setting, Stage
from environments.simulbench.summary import verdicts
from proctor.digest import digest_of
from proctor.environment import Agent, Policy
from proctor.llm.cached_model import Answer
from proctor.types import Action, Finish, FinishReason, Message, Summary

Order = Literal["reference first", "candidate first"]
ORDERS: tuple[Order, Order] = ("reference first", "candidate first")
"""The conversations of a session, each with one order of the two responses."""
Outcome = Literal["win", "tie", "lose"]
"""Outcome of a pair for the candidate."""


class CompareStage(Stage[Pair]):
    """Samples are pairs of responses: the reference model's and the candidate's."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, dataset.load(setting.data, Pair) if setting.data else shipped.pairs())

    def about(self, sample: str) -> dict[str, JsonValue]:
        pair = self.record(sample)
        models: dict[str, JsonValue] = {"reference": pair.model_a, "candidate": pair.model_b}
        return {**super().about(sample), "place": pair.place, **models}

    def cluster(self, sample: str) -> str:
        """A pair does not name its task; the first message of its dialogue is the task's description."""
        return f"task-{digest_of(self.record(sample).dialogue_history[0].content)}"

    async def play(self, sample: str, agent: Agent, seed: int, judges: Judges) -> Finish:
        pair, given, texts, bad = self.record(sample), list[Outcome](), dict[str, JsonValue](), 0
        for order in self._orders(sample, seed):
            answer = await self._ask(agent, pair, order)
            given.append(_outcome(answer.meaning, order))
            texts[order] = answer.reply.text
            bad += answer.reply.tries - 1
        outcome = given[0] if len(set(given)) == 1 else "tie"
        return Finish(
            reason=FinishReason.COMPLETED,
            score={"win": 1.0, "tie": 0.5, "lose": 0.0}[outcome],
            metrics={name: float(name == outcome) for name in ("win", "tie", "lose")} | {BAD_REPLIES: float(bad)},
            detail={"texts": texts},
        )

    async def _ask(self, agent: Agent, pair: Pair, order: Order) -> Answer[Verdict]:
        first, second = (pair.a, pair.b) if order == "reference first" else (pair.b, pair.a)
        limit = self.setting.max_response_chars
        messages = prompt.verdict(pair, first[:limit], second[:limit], ensure_ascii=self.setting.ensure_ascii)
        question = JudgeQuestion(
            messages,
            lambda text: reply.verdict(text, self.setting.profile),
            self.setting.reminder(prompt.VERDICT_REMINDER),
            "judge",
            self.setting.tries,
        )
        return await interview(agent, question, order)

    def _orders(self, sample: str, seed: int) -> tuple[Order, ...]:
        return ORDERS if self.setting.direction == "both" else (random.Random(f"{sample}:{seed}").choice(ORDERS),)

    def policies(self, sample: str, seed: int) -> tuple[Policy, Policy, Policy]:
        pair = self.record(sample)

        def by_rules(conversation: str, transcript: Sequence[Message]) -> Action:
            history = [line.message() for line in pair.dialogue_history]
            first, second = (pair.a, pair.b) if conversation == "reference first" else (pair.b, pair.a)
            return Action(content=f"[[{'CAB'[rules.better(history, first, second, pair.exchange)]}]]")

        def by_chance(conversation: str, transcript: Sequence[Message]) -> Action:
            return Action(content=f"[[{random.Random(f'{sample}:{seed}:{conversation}').choice('ABC')}]]")

        return by_rules, always("[[A]]"), by_chance

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return verdicts(finishes)


def _outcome(verdict: Verdict, order: Order) -> Outcome:
    if verdict == "C":
        return "tie"
    return "win" if (verdict == "B") == (order == "reference first") else "lose"

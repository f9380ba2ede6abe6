"""Mode `extract`: the agent, as a judge, finds a dialogue's first challenging turn (SimulBench's Appendix B.3)."""

import random
from collections.abc import Sequence

from environments.simulbench import dataset, prompt, reply, shipped
from environments.simulbench.judges import rules
from environments.simulbench.judges.interview import BAD_REPLIES, JudgeQuestion, interview
from environments.simulbench.judges.judges import Judges
from environments.simulbench.policies import always
from environments.simulbench.records import TURNS, Dialogue
from environments.simulbench.stage import Setting, Stage
from environments.simulbench.summary import work
from proctor.environment import Agent, Policy
from proctor.types import Finish, FinishReason, Summary


class ExtractStage(Stage[Dialogue]):
    """Samples are whole dialogues."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, dataset.load(setting.data, Dialogue) if setting.data else shipped.dialogues())

    def cluster(self, sample: str) -> str:
        return self.record(sample).source_id

    async def play(self, sample: str, agent: Agent, seed: int, judges: Judges) -> Finish:
        dialogue = self.record(sample)
        messages = prompt.challenge(dialogue, ensure_ascii=self.setting.ensure_ascii)
        question = JudgeQuestion(
            messages, lambda text: reply.turn(text, TURNS), prompt.CHALLENGE_REMINDER, "judge", self.setting.tries
        )
        answer = await interview(agent, question)
        turn = answer.meaning
        return Finish(
            reason=FinishReason.COMPLETED,
            score=1.0,
            metrics={
                "challenging": float(turn > 0),
                "scripts": float(TURNS + 1 - turn if turn else 1),
                BAD_REPLIES: float(answer.reply.tries - 1),
            },
            detail={"turn": turn, "text": answer.reply.text, "tries": answer.reply.tries},
        )

    def policies(self, sample: str, seed: int) -> tuple[Policy, Policy, Policy]:
        dialogue, chosen = self.record(sample), random.Random(f"{sample}:{seed}").randint(0, TURNS)
        return always(f"[[{rules.challenging(dialogue)}]]"), always("[[0]]"), always(f"[[{chosen}]]")

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        """The fraction of dialogues with a challenging turn, and the mean number of scripts per dialogue."""
        return work(finishes, ("challenging", "scripts"), "The agent of this run is the judge that finds the turns.")

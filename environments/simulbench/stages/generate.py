"""Mode `generate`: the agent, as an author, writes a new task after examples (SimulBench's Appendix B.1)."""

import json
import random
from collections.abc import Sequence

from pydantic import JsonValue

from environments.simulbench import dataset, prompt, reply, shipped
from environments.simulbench.judges.interview import BAD_REPLIES, JudgeQuestion, interview
from environments.simulbench.judges.judges import Judges
from environments.simulbench.policies import always
from environments.simulbench.records import Kind, Task
from environments.simulbench.stage import Setting, Stage
from environments.simulbench.summary import authored
from proctor.environment import Agent, Policy
from proctor.types import Finish, FinishReason, Summary

EXAMPLES = 3
KINDS: tuple[Kind, Kind] = ("stateful", "stateless")
"""Kinds of the samples, in turn."""
_THINGS = ("Parking Meter", "Ferry", "Beehive", "Traffic Light", "Jukebox", "Lighthouse", "Sundial", "Weather Station")
_PLACES = ("an Island", "a Castle", "a Harbour", "the Moon", "a Desert", "a Museum", "a Village", "a Space Station")


class GenerateStage(Stage[Task]):
    """Samples are new tasks to write; the records are the existing tasks."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, dataset.load(setting.data, Task) if setting.data else shipped.tasks())
        self._taken = {task.act.lower() for task in self.records.values()}

    def samples(self) -> tuple[str, ...]:
        return tuple(f"new-{number:03d}" for number in range(self.setting.count))

    def about(self, sample: str) -> dict[str, JsonValue]:
        """The licence is that of every task that may be an example."""
        licences = dict.fromkeys(task.licence for task in self.records.values())
        return {"type": self._kind(sample), "licence": "; ".join(licences)}

    async def play(self, sample: str, agent: Agent, seed: int, judges: Judges) -> Finish:
        kind = self._kind(sample)
        question = JudgeQuestion(
            prompt.author(self._examples(sample, seed), kind, ensure_ascii=self.setting.ensure_ascii),
            lambda text: self._read(text, kind),
            prompt.AUTHOR_REMINDER,
            "author",
            self.setting.tries,
        )
        answer = await interview(agent, question)
        return Finish(
            reason=FinishReason.COMPLETED,
            score=1.0,
            metrics={BAD_REPLIES: float(answer.reply.tries - 1)},
            detail={**answer.meaning.model_dump(), "tries": answer.reply.tries},
        )

    def _read(self, text: str, kind: Kind) -> reply.Authored:
        task = reply.authored(text)
        if task.type != kind:
            raise reply.UnreadableAnswer(f"type must be {kind}")
        if task.act.lower() in self._taken:
            raise reply.UnreadableAnswer("a task with this act is there already; choose another subject")
        return task

    def _kind(self, sample: str) -> Kind:
        return KINDS[self._number(sample) % 2]

    def _number(self, sample: str) -> int:
        try:
            return self.samples().index(sample)
        except ValueError as error:
            raise ValueError(f"no sample {sample!r}; ids look like new-000") from error

    def _examples(self, sample: str, seed: int) -> Sequence[Task]:
        tasks = tuple(self.records.values())
        return random.Random(f"{sample}:{seed}").sample(tasks, min(EXAMPLES, len(tasks)))

    def policies(self, sample: str, seed: int) -> tuple[Policy, Policy, Policy]:
        """The reference writes a new role for each sample, the naive policy always the same, the random one any."""
        number, kind, dice = self._number(sample), self._kind(sample), random.Random(f"{sample}:{seed}")
        places, things = len(_PLACES), len(_THINGS)
        new = f"{_THINGS[number % things]} on {_PLACES[number // things % places]} {number // things // places or ''}"
        drawn = f"{dice.choice(_THINGS)} near {dice.choice(_PLACES)}"
        return (
            always(_written(new.strip(), kind)),
            always(_written("Just a Machine", kind)),
            always(_written(drawn, kind)),
        )

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return authored(finishes)


def _written(act: str, kind: Kind) -> str:
    description = (
        f"Simulate this: {act}. I tell you what happens to it, one thing a message; you answer with what it does, in a "
        "single line, and with nothing else. The first thing: it is switched on."
    )
    task = {"act": act, "task_description": description, "request_type": "what happens next", "type": kind}
    return json.dumps(task)

"""Mode `script`: the agent gives the next reply of a given dialogue, once, and the judge rates it."""

from collections.abc import Sequence

from pydantic import JsonValue

from environments.simulbench import dataset, policies, shipped
from environments.simulbench.judges.judges import Judges
from environments.simulbench.records import DialogueLine, Script
from environments.simulbench.scoring import Response, judged
from environments.simulbench.stage import Setting, Stage
from environments.simulbench.summary import ratings
from proctor.environment import Agent, Policy
from proctor.types import Finish, Message, Observation, Summary


class ScriptStage(Stage[Script]):
    """Samples are scripts."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, dataset.load(setting.data, Script) if setting.data else shipped.scripts())
        self._places = dataset.places(tuple(self.records.values()), setting.types)

    def shape(self) -> object:
        return [super().shape(), self._places]

    def about(self, sample: str) -> dict[str, JsonValue]:
        return {**super().about(sample), "place": self._places[sample], "act": self.records[sample].act}

    def cluster(self, sample: str) -> str:
        return self.record(sample).source_id

    async def play(self, sample: str, agent: Agent, seed: int, judges: Judges) -> Finish:
        script = self.record(sample)
        history = opened(self.setting.system, script.dialogue_history)
        action = await agent.act(Observation(messages=history))
        response = Response.of(action.content, self.setting.max_response_chars)
        return await judged(script, response, self.setting, judges)

    def policies(self, sample: str, seed: int) -> tuple[Policy, Policy, Policy]:
        script = self.record(sample)
        reference = policies.naive if script.exchange is None else policies.knowing((script.exchange,))
        return reference, policies.naive, policies.chance(sample, seed)

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return ratings(finishes, self.setting.judged_by, self.setting.prompt_note)


def opened(system: str | None, lines: Sequence[DialogueLine]) -> tuple[Message, ...]:
    """The lines as messages, after the system message if there is one."""
    first = (Message(role="system", content=system),) if system else ()
    return (*first, *(line.message() for line in lines))

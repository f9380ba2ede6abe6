"""Mode `live`: a user agent converses with the agent for four turns; the last reply is judged."""

from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue

from environments.simulbench import dataset, policies, prompt, reply, shipped
from environments.simulbench.judges.interview import USER_TRIES, JudgeQuestion
from environments.simulbench.judges.judges import Judges
from environments.simulbench.records import TURNS, DialogueLine, Task, plain
from environments.simulbench.scoring import Response, judged
from environments.simulbench.stage import Setting, Stage
from environments.simulbench.stages.script import opened
from environments.simulbench.summary import ratings
from proctor.environment import Agent, Policy
from proctor.types import Finish, Observation, Summary


class LiveStage(Stage[Task]):
    """Samples are tasks."""

    def __init__(self, setting: Setting) -> None:
        tasks = dataset.load(setting.data, Task) if setting.data else shipped.tasks()
        super().__init__(setting, dataset.configured(tasks, setting.task_config) if setting.task_config else tasks)

    def about(self, sample: str) -> dict[str, JsonValue]:
        task = self.record(sample)
        return {**super().about(sample), "act": task.act, "task_description": task.task_description}

    async def play(self, sample: str, agent: Agent, seed: int, judges: Judges) -> Finish:
        task, strategies = self.record(sample), list[JsonValue]()
        lines: tuple[DialogueLine, ...] = ()
        request = task.task_description
        while True:
            lines = (*lines, DialogueLine(role="user", content=request))
            messages = opened(self.setting.system if len(lines) == 1 else None, lines[-1:])
            action = await agent.act(Observation(messages=messages))
            response = Response.of(action.content, self.setting.max_response_chars)
            lines = (*lines, DialogueLine(role="assistant", content=response.text))
            if len(lines) == 2 * TURNS:
                break
            follow_up = await self._follow_up(task, lines, seed, judges)
            strategies.append(follow_up.strategy)
            request = follow_up.request
        dialogue = shipped.dialogue_of(task, [line.content for line in lines], source_file_name="live.json")
        (script,) = shipped.cut(dialogue, 0, "live")
        finish = await judged(script, response, self.setting, judges)
        dialogue_detail: dict[str, JsonValue] = {"messages": plain(lines), "strategies": strategies}
        return finish.model_copy(update={"detail": finish.detail | dialogue_detail})

    async def _follow_up(
        self, task: Task, lines: tuple[DialogueLine, ...], seed: int, judges: Judges
    ) -> reply.UserRequest:
        messages = prompt.user(task, lines, ensure_ascii=self.setting.ensure_ascii)
        question = JudgeQuestion(messages, reply.user_request, prompt.USER_REMINDER, "user", USER_TRIES)
        return (await judges.user(task, lines, seed).ask(question)).meaning

    def policies(self, sample: str, seed: int) -> tuple[Policy, Policy, Policy]:
        task = self.record(sample)
        reference = policies.knowing(task.exchanges) if task.exchanges else policies.naive
        return reference, policies.naive, policies.chance(sample, seed)

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        summary = ratings(finishes, self.setting.judged_by, self.setting.prompt_note)
        used = Counter(
            str(strategy)
            for finish in finishes
            if isinstance(strategies := finish.detail.get("strategies"), list)
            for strategy in strategies
        )
        counts = {f"strategy_{name}": float(count) for name, count in sorted(used.items())}
        return summary.model_copy(update={"metrics": summary.metrics | counts})

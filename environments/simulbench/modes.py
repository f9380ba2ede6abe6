"""The modes of the environment: `script` and `live`, where the agent simulates, and `compare`, where it judges."""

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Generic, Literal, TypeVar

from pydantic import JsonValue

from environments.simulbench import dataset, policies, prompt, reply, rules, shipped
from environments.simulbench.judges import USER_TRIES, Judges, Unparsed, question
from environments.simulbench.records import TURNS, DialogueLine, Pair, Script, Task, plain
from environments.simulbench.reply import UnreadableAnswer, Verdict
from environments.simulbench.scoring import Response, Setting, judged
from environments.simulbench.summary import ratings, verdicts
from proctor.digest import digest_of
from proctor.environment import Agent, Policy
from proctor.llm.cached_model import UNASKED, Answer, Question
from proctor.session.kept_replies import ModelReply
from proctor.types import Action, Finish, FinishReason, Message, Observation, Summary

BAD_REPLIES = "bad_replies"
"""Metric: number of unreadable answers of the agent."""
Order = Literal["reference first", "candidate first"]
ORDERS: tuple[Order, Order] = ("reference first", "candidate first")
"""The conversations of a session, each with one order of the two responses."""
Outcome = Literal["win", "tie", "lose"]
"""Outcome of a pair for the candidate."""
Record = TypeVar("Record", Task, Script, Pair)


class Stage(ABC, Generic[Record]):
    """A stage of the benchmark, which is a mode of the environment, with records of one kind."""

    def __init__(self, setting: Setting, records: Iterable[Record]) -> None:
        self.setting = setting
        self.records: Mapping[str, Record] = {record.id: record for record in records}

    def shape(self) -> object:
        """The data that shape trials, for the digest."""
        return list(self.records.values())

    def about(self, sample: str) -> dict[str, JsonValue]:
        """Fields of the sample for every finish's detail, at least `type` and `licence`. Raises ValueError."""
        record = self.record(sample)
        return {"type": record.type, "licence": record.licence}

    def record(self, sample: str) -> Record:
        """The record of a sample. Raises ValueError if there is none."""
        if sample not in self.records:
            raise ValueError(f"no sample {sample!r}; ids look like {next(iter(self.records))}")
        return self.records[sample]

    def cluster(self, sample: str) -> str:
        """The simulation task of the sample, by default the sample itself."""
        return sample

    @abstractmethod
    def question(self, sample: str) -> tuple[str, str]:
        """The last message that the agent has to answer, and a reply known to be right; empty where none is known."""

    @abstractmethod
    async def play(self, sample: str, agent: Agent, seed: int, judges: Judges) -> Finish:
        """Plays one session. Raises AgentStopped, and Unparsed if answers of a judge or user are unreadable."""

    @abstractmethod
    def policies(self, sample: str, seed: int) -> tuple[Policy, Policy, Policy]:
        """The reference, the naive and the random policy."""

    @abstractmethod
    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        """The metrics of many finishes."""


class ScriptStage(Stage[Script]):
    """Samples are scripts: the agent gives the next reply of a dialogue, once, and the judge rates it."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, dataset.load(setting.data, Script) if setting.data else shipped.scripts())
        self._places = dataset.places(tuple(self.records.values()), setting.types)

    def shape(self) -> object:
        return [super().shape(), self._places]

    def about(self, sample: str) -> dict[str, JsonValue]:
        return {**super().about(sample), "place": self._places[sample], "act": self.records[sample].act}

    def cluster(self, sample: str) -> str:
        return self.record(sample).source_id

    def question(self, sample: str) -> tuple[str, str]:
        script = self.record(sample)
        return script.dialogue_history[-1].content, script.exchange.answer if script.exchange else ""

    async def play(self, sample: str, agent: Agent, seed: int, judges: Judges) -> Finish:
        script = self.record(sample)
        history = _opened(self.setting.system, script.dialogue_history)
        action = await agent.act(Observation(messages=history))
        response = Response.of(action.content, self.setting.max_response_chars)
        return await judged(script, response, self.setting, judges)

    def policies(self, sample: str, seed: int) -> tuple[Policy, Policy, Policy]:
        script = self.record(sample)
        reference = policies.naive if script.exchange is None else policies.knowing((script.exchange,))
        return reference, policies.naive, policies.chance(sample, seed)

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return ratings(finishes, self.setting.judged_by, self.setting.prompt_note)


class LiveStage(Stage[Task]):
    """Samples are tasks: a user agent converses with the agent for four turns; the last reply is judged."""

    def __init__(self, setting: Setting) -> None:
        tasks = dataset.load(setting.data, Task) if setting.data else shipped.tasks()
        super().__init__(setting, dataset.configured(tasks, setting.task_config) if setting.task_config else tasks)

    def about(self, sample: str) -> dict[str, JsonValue]:
        task = self.record(sample)
        return {**super().about(sample), "act": task.act, "task_description": task.task_description}

    def question(self, sample: str) -> tuple[str, str]:
        task = self.record(sample)
        return task.task_description, task.exchanges[-1].answer if task.exchanges else ""

    async def play(self, sample: str, agent: Agent, seed: int, judges: Judges) -> Finish:
        task, strategies = self.record(sample), list[JsonValue]()
        lines: tuple[DialogueLine, ...] = ()
        request = task.task_description
        while True:
            lines = (*lines, DialogueLine(role="user", content=request))
            messages = _opened(self.setting.system if len(lines) == 1 else None, lines[-1:])
            action = await agent.act(Observation(messages=messages))
            response = Response.of(action.content, self.setting.max_response_chars)
            lines = (*lines, DialogueLine(role="assistant", content=response.text))
            if len(lines) == 2 * TURNS:
                break
            messages = prompt.user(task, lines, ensure_ascii=self.setting.ensure_ascii)
            asked = question(messages, reply.user_request, prompt.USER_REMINDER, USER_TRIES)
            follow_up = (await judges.follow_up(asked, task, lines, seed)).meaning
            strategies.append(follow_up.strategy)
            request = follow_up.request
        dialogue = shipped.dialogue_of(task, [line.content for line in lines], source_file_name="live.json")
        (script,) = shipped.cut(dialogue, 0, "live")
        finish = await judged(script, response, self.setting, judges)
        dialogue_detail: dict[str, JsonValue] = {"messages": plain(lines), "strategies": strategies}
        return finish.model_copy(update={"detail": finish.detail | dialogue_detail})

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


class CompareStage(Stage[Pair]):
    """Samples are pairs of responses, the reference model's and the candidate's: the agent judges which is better.

    See SimulBench's Appendix B.4.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, dataset.load(setting.data, Pair) if setting.data else shipped.pairs())

    def about(self, sample: str) -> dict[str, JsonValue]:
        pair = self.record(sample)
        models: dict[str, JsonValue] = {"reference": pair.model_a, "candidate": pair.model_b}
        return {**super().about(sample), "place": pair.place, **models}

    def cluster(self, sample: str) -> str:
        """A pair does not name its task; the first message of its dialogue is the task's description."""
        return f"task-{digest_of(self.record(sample).dialogue_history[0].content)}"

    def question(self, sample: str) -> tuple[str, str]:
        return f"which reply is better: {self.record(sample).dialogue_history[-1].content}", ""

    async def play(self, sample: str, agent: Agent, seed: int, judges: Judges) -> Finish:
        pair, given, texts, bad = self.record(sample), list[Outcome](), dict[str, JsonValue](), 0
        random_one = (random.Random(f"{sample}:{seed}").choice(ORDERS),)
        for order in ORDERS if self.setting.direction == "both" else random_one:
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
        """The agent's verdict on one order of the responses. Raises Unparsed, and the agent's exceptions."""
        asked = self._question(pair, order)
        messages, problem, said = asked.messages, "", UNASKED
        while said.tries < asked.tries:
            fresh = said.tries == 0 or asked.remind is None
            action = await agent.act(Observation(messages=messages, conversation=order, fresh=fresh))
            said = ModelReply(text=action.content, model="", tries=said.tries + 1)
            try:
                return Answer(asked.read(said.text), said)
            except UnreadableAnswer as unreadable:
                problem = str(unreadable)
                if asked.remind is not None:
                    messages = (Message(role="user", content=asked.remind(problem)),)
        raise Unparsed("judge", problem, said)

    def _question(self, pair: Pair, order: Order) -> Question[Verdict]:
        first, second = (pair.a, pair.b) if order == "reference first" else (pair.b, pair.a)
        limit = self.setting.max_response_chars
        messages = prompt.verdict(pair, first[:limit], second[:limit], ensure_ascii=self.setting.ensure_ascii)
        reminder = self.setting.reminder(prompt.VERDICT_REMINDER)
        return question(messages, partial(reply.verdict, profile=self.setting.profile), reminder, self.setting.tries)

    def policies(self, sample: str, seed: int) -> tuple[Policy, Policy, Policy]:
        pair = self.record(sample)

        def by_rules(conversation: str, transcript: Sequence[Message]) -> Action:
            history = [line.message() for line in pair.dialogue_history]
            first, second = (pair.a, pair.b) if conversation == "reference first" else (pair.b, pair.a)
            return Action(content=f"[[{'CAB'[rules.better(history, first, second, pair.exchange)]}]]")

        def by_chance(conversation: str, transcript: Sequence[Message]) -> Action:
            return Action(content=f"[[{random.Random(f'{sample}:{seed}:{conversation}').choice('ABC')}]]")

        return by_rules, policies.always("[[A]]"), by_chance

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return verdicts(finishes)


def _outcome(verdict: Verdict, order: Order) -> Outcome:
    if verdict == "C":
        return "tie"
    return "win" if (verdict == "B") == (order == "reference first") else "lose"


def _opened(system: str | None, lines: Sequence[DialogueLine]) -> tuple[Message, ...]:
    """The lines as messages, after the system message if there is one."""
    first = (Message(role="system", content=system),) if system else ()
    return (*first, *(line.message() for line in lines))

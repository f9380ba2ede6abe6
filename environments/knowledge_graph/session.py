"""One session: the conversation from the question to the final answer, and its marks."""

from collections import Counter
from typing import Literal, NamedTuple

from environments.knowledge_graph import prompt
from environments.knowledge_graph.dataset import QuestionEntry
from environments.knowledge_graph.graphs import Graph
from environments.knowledge_graph.programs import answers_query
from environments.knowledge_graph.prompt import GraphDialogue
from environments.knowledge_graph.reply import FinalAnswer, GraphAction, LooseAnswer, NoAction, ToolRequests
from environments.knowledge_graph.scoring import marks, predicted
from environments.knowledge_graph.tools import Listing, ToolRefusal, ToolRules, Tools, Variable
from proctor.environment import Agent, AgentStopped
from proctor.tools import UnreadableCall
from proctor.types import Finish, FinishReason, Message, Observation, asked_and_answered

_SHOWN_ANSWERS = 200
Bad = Literal["format", "action"]


class _Told(NamedTuple):
    """What the agent is told after an action."""

    text: str
    bad: Bad | None = None
    """Whether the action could not be read, or not be executed; None where it was executed."""


class GraphSession:
    """Plays one sample; sessions share only the graph, which never changes."""

    def __init__(
        self, entry: QuestionEntry, graph: Graph, graph_name: str | None, rules: ToolRules, dialogue: GraphDialogue
    ) -> None:
        self._dialogue, self._reader = dialogue, dialogue.reader
        self._entry, self._graph, self._graph_name, self._rules = entry, graph, graph_name, rules
        self._strict = rules.profile == "strict"
        self._tools = Tools(entry.entities, graph, graph_name, rules)
        self._bad = Counter[Bad]()
        """Replies of which no action was executed."""
        self._rounds = 0

    async def play(self, agent: Agent) -> Finish:
        """The whole conversation. Raises EnvironmentFault where the graph fails, and AgentUnavailable."""
        history = [*self._dialogue.before, prompt.question(self._entry)]
        observation = Observation(messages=tuple(history), tools=self._reader.tools)
        for _ in range(prompt.ROUNDS):
            try:
                action = await agent.act(observation)
            except AgentStopped as stopped:
                return self._finish(stopped.reason)
            self._rounds += 1
            parsed = self._reader.read(action)
            results: list[_Told] = []
            for asked in parsed.actions:
                result = await self._step(asked)
                if isinstance(result, Finish):
                    return result
                results.append(result)
            bad = {result.bad for result in results}
            if None not in bad:
                self._bad["action" if "action" in bad else "format"] += 1
            reply = self._dialogue.kept(action.content)
            answers = parsed.answered([result.text for result in results])
            history += [Message(role="assistant", content=reply), *answers]
            observation = prompt.next_step(history, len(answers), reply != action.content, self._reader.tools)
        return self._finish(self._limit_reason())

    async def _step(self, asked: GraphAction | UnreadableCall) -> Finish | _Told:
        """The end, where an action answers, or what the agent is told."""
        match asked:
            case UnreadableCall(why, kind):
                return _Told(why, "action" if kind == "unknown_function" else "format")
            case LooseAnswer() if not self._strict:
                return _Told(prompt.ANSWER_FORM, "format")
            case FinalAnswer(digits) | LooseAnswer(digits):
                return await self._answer(digits)
            case ToolRequests() as calls:
                return await self._call(calls)
            case NoAction():
                return _Told(prompt.NO_ACTION, "format")

    async def _answer(self, digits: str) -> Finish | _Told:
        variable = self._tools.variable(digits)
        if variable is not None:
            query = answers_query(variable.program, self._graph_name)
            found = await self._graph.column(query, self._rules.max_rows)
            return self._finish(FinishReason.COMPLETED, predicted(found))
        if self._dialogue.one_answer:
            self._bad["action"] += 1
            return self._finish(FinishReason.INVALID_ACTION)
        return _Told(prompt.unknown_variable(digits), "action")

    async def _call(self, line: ToolRequests) -> _Told:
        """The result of the first call that works, else why the last one does not."""
        text = prompt.NOT_EXECUTED
        readable = False
        for call in line.calls:
            outcome = await self._tools.run(call)
            if not isinstance(outcome, ToolRefusal):
                return _Told(self._observation(outcome))
            readable = not outcome.unreadable
            text = prompt.refusal(call, outcome if self._strict else None) if readable else prompt.unreadable(call)
        return _Told(text, "action" if readable else "format")

    def _observation(self, outcome: Listing | Variable) -> str:
        if isinstance(outcome, Listing):
            return prompt.listing(outcome, self._rules.max_shown)
        return prompt.variable(len(self._tools.variables) - 1, outcome)

    def _limit_reason(self) -> FinishReason:
        """Why a session without an answer ended; `strict` has reasons of its own for those without a usable reply."""
        reason = self._reader.limit_reason()
        if reason is not FinishReason.TURN_LIMIT or not self._strict or self._bad.total() < prompt.ROUNDS:
            return reason
        mostly_format = self._bad["format"] >= self._bad["action"]
        return FinishReason.INVALID_FORMAT if mostly_format else FinishReason.INVALID_ACTION

    def _finish(self, reason: FinishReason, found: frozenset[str] = frozenset()) -> Finish:
        scores = marks({answer for answer, _ in self._entry.answers}, found)
        named = {answer: name or answer for answer, name in self._entry.answers}
        answered = ", ".join(named.get(each, each) for each in sorted(found)[:_SHOWN_ANSWERS])
        counts = {
            "n_bad_format": float(self._bad["format"]),
            "n_bad_action": float(self._bad["action"]),
            "rounds": float(self._rounds),
        }
        return Finish(
            reason=reason,
            score=scores["F1"],
            metrics=self._reader.metrics() | scores | counts,
            detail={
                **asked_and_answered(self._entry.question, ", ".join(named.values()), answered),
                "source": self._entry.source,
                "answers": len(found),
                "answer": sorted(found)[:_SHOWN_ANSWERS],
                "cut": len(found) >= self._rules.max_rows,
            },
        )

"""One session: the conversation from the question to the final answer, and its marks."""

from collections.abc import Sequence
from dataclasses import dataclass

from environments.knowledge_graph import prompt
from environments.knowledge_graph.dataset import QuestionEntry
from environments.knowledge_graph.graphs import Graph
from environments.knowledge_graph.programs import answers_query
from environments.knowledge_graph.reply import FinalAnswer, LooseAnswer, NoAction, ToolRequests, read, shorten
from environments.knowledge_graph.scoring import marks, predicted
from environments.knowledge_graph.tools import Listing, ToolRefusal, ToolRules, Tools, Variable
from proctor.environment import Agent, AgentStopped
from proctor.types import Finish, FinishReason, Message, Observation

_SHOWN_ANSWERS = 200


@dataclass
class _Bad:
    """The number of replies that could not be read, and of replies that could not be executed."""

    format: int = 0
    action: int = 0


class GraphSession:
    """Plays one sample; sessions share only the graph, which never changes."""

    def __init__(
        self, entry: QuestionEntry, graph: Graph, graph_name: str | None, rules: ToolRules, before: Sequence[Message]
    ) -> None:
        self._before = before
        self._entry, self._graph, self._graph_name, self._rules = entry, graph, graph_name, rules
        self._strict = rules.profile == "strict"
        self._tools = Tools(entry.entities, graph, graph_name, rules)
        self._bad = _Bad()
        self._rounds = 0

    async def play(self, agent: Agent) -> Finish:
        """The whole conversation. Raises EnvironmentFault where the graph fails, and AgentUnavailable."""
        history = [*self._before, prompt.question(self._entry)]
        observation = Observation(messages=tuple(history))
        for _ in range(prompt.ROUNDS):
            try:
                action = await agent.act(observation)
            except AgentStopped as stopped:
                return self._finish(stopped.reason, frozenset())
            self._rounds += 1
            reply = shorten(action.content)
            step = await self._step(reply)
            if isinstance(step, Variable):
                return await self._answered(step)
            history += [Message(role="assistant", content=reply), Message(role="user", content=step)]
            observation = prompt.next_step(history, shortened=reply != action.content)
        return self._finish(self._limit_reason(), frozenset())

    async def _step(self, reply: str) -> Variable | str:
        """The variable that a reply answers with, or the text of the next observation."""
        match read(reply, tuple(self._entry.entities) if self._strict else ()):
            case LooseAnswer() if not self._strict:
                self._bad.format += 1
                return prompt.ANSWER_FORM
            case FinalAnswer(digits) | LooseAnswer(digits):
                variable = self._tools.variable(digits)
                self._bad.action += variable is None
                return variable or prompt.unknown_variable(digits)
            case ToolRequests() as calls:
                return await self._call(calls)
            case NoAction():
                self._bad.format += 1
                return prompt.NO_ACTION

    async def _call(self, line: ToolRequests) -> str:
        """The result of the first call that works, else why the last one does not."""
        text = prompt.NOT_EXECUTED
        readable = False
        for call in line.calls:
            outcome = await self._tools.run(call)
            if not isinstance(outcome, ToolRefusal):
                return self._observation(outcome)
            readable = not outcome.unreadable
            text = prompt.refusal(call, outcome if self._strict else None) if readable else prompt.unreadable(call)
        self._bad.action += readable
        self._bad.format += not readable
        return text

    def _observation(self, outcome: Listing | Variable) -> str:
        if isinstance(outcome, Listing):
            return prompt.listing(outcome, self._rules.max_shown)
        return prompt.variable(len(self._tools.variables) - 1, outcome)

    async def _answered(self, variable: Variable) -> Finish:
        query = answers_query(variable.program, self._graph_name)
        return self._finish(FinishReason.COMPLETED, predicted(await self._graph.column(query, self._rules.max_rows)))

    def _limit_reason(self) -> FinishReason:
        """Why a session without an answer ended; `strict` has reasons of its own for those without a usable reply."""
        if not self._strict or self._bad.format + self._bad.action < prompt.ROUNDS:
            return FinishReason.TURN_LIMIT
        return FinishReason.INVALID_FORMAT if self._bad.format >= self._bad.action else FinishReason.INVALID_ACTION

    def _finish(self, reason: FinishReason, found: frozenset[str]) -> Finish:
        scores = marks({answer for answer, _ in self._entry.answers}, found)
        counts = {
            "n_bad_format": float(self._bad.format),
            "n_bad_action": float(self._bad.action),
            "rounds": float(self._rounds),
        }
        return Finish(
            reason=reason,
            score=scores["F1"],
            metrics=scores | counts,
            detail={
                "source": self._entry.source,
                "answers": len(found),
                "answer": sorted(found)[:_SHOWN_ANSWERS],
                "cut": len(found) >= self._rules.max_rows,
            },
        )

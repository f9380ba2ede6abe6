"""Asks judges, users and authors until an answer is readable."""

from collections.abc import Callable
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from environments.simulbench import prompt
from environments.simulbench.reply import Profile, UnreadableAnswer
from proctor.environment import Agent
from proctor.llm.cached_model import Answer
from proctor.session.kept_replies import ModelReply
from proctor.session.thoughts import without_thought
from proctor.types import Message, Observation

TRIES: dict[Profile, int] = {"strict": 3, "compat": 20}
"""Limit of answers requested from a judge or author for one question."""
USER_TRIES = 5
MAX_ANSWER_CHARS = 100_000
"""A longer answer is unreadable; about 25 times the published limit of a judge's answer."""
BAD_REPLIES = "bad_replies"
"""Metric: number of unreadable answers of the agent under test."""
Meaning = TypeVar("Meaning")


class Unparsed(Exception):
    """No answer was readable in all tries. The trial ends in a fault without a score."""

    def __init__(self, who: str, problem: str, reply: ModelReply) -> None:
        super().__init__(f"{who}_unparsed: {problem}")
        self.reply = reply
        """The last answer, with the token usage of all answers."""
        self.detail: dict[str, JsonValue] = {
            "cause": f"{who}_unparsed",
            "problem": problem,
            "text": reply.text[:MAX_ANSWER_CHARS],
        }
        """Detail of the finish."""


class JudgeQuestion(NamedTuple, Generic[Meaning]):
    """A question, the parser of its answers, and the reminder after an unreadable answer."""

    messages: tuple[Message, ...]
    parse: Callable[[str], Meaning]
    """Raises UnreadableAnswer."""
    reminder: str | None
    """May hold `{problem}` for the error in the last answer; None to ask again with the same messages."""
    who: str
    tries: int

    def read(self, text: str) -> Meaning:
        """The parsed answer. Raises UnreadableAnswer, also if the answer is too long, thoughts aside."""
        if len(text) > MAX_ANSWER_CHARS and len(without_thought(text)) > MAX_ANSWER_CHARS:
            raise UnreadableAnswer(f"the answer has more than {MAX_ANSWER_CHARS} characters")
        return self.parse(text)

    @property
    def remind(self) -> Callable[[str], str] | None:
        """Makes the message after an unreadable answer from what is wrong with it."""
        return None if self.reminder is None else partial(prompt.reminder, self.reminder)


async def interview(agent: Agent, question: JudgeQuestion[Meaning], conversation: str = "main") -> Answer[Meaning]:
    """The agent's answer to a question, in a new conversation. Raises Unparsed, and the agent's exceptions."""
    messages, problem, reply = question.messages, "", ModelReply(text="", model="", tries=0)
    while reply.tries < question.tries:
        fresh = reply.tries == 0 or question.remind is None
        action = await agent.act(Observation(messages=messages, conversation=conversation, fresh=fresh))
        reply = ModelReply(text=action.content, model="", tries=reply.tries + 1)
        try:
            return Answer(question.read(reply.text), reply)
        except UnreadableAnswer as unreadable:
            problem = str(unreadable)
            if question.remind is not None:
                messages = (Message(role="user", content=question.remind(problem)),)
    raise Unparsed(question.who, problem, reply)

"""Asks until the answer can be read: judges, users and authors, wherever they sit."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from environments.simulbench import prompt
from environments.simulbench.reply import Profile, UnreadableAnswer
from proctor.environment import Agent
from proctor.llm import Answer, ModelReply
from proctor.types import Message, Observation

TRIES: dict[Profile, int] = {"strict": 3, "compat": 20}
"""Answers asked for before a judge or author counts as unreadable."""
USER_TRIES = 5
MAX_ANSWER_CHARS = 100_000
"""A longer answer is none: some 25 times what a judge is allowed as published."""
BAD_REPLIES = "bad_replies"
"""The metric that says how many answers of an agent under test were asked for again."""
Meaning = TypeVar("Meaning")


class Unparsed(Exception):
    """No answer could be read in all tries: a fault, never a number."""

    def __init__(self, who: str, problem: str, reply: ModelReply) -> None:
        super().__init__(f"{who}_unparsed: {problem}")
        self.reply = reply
        """The last answer, with the cost of all."""
        self.detail: dict[str, JsonValue] = {
            "cause": f"{who}_unparsed",
            "problem": problem,
            "text": reply.text[:MAX_ANSWER_CHARS],
        }
        """What the finish says."""


class JudgeQuestion(NamedTuple, Generic[Meaning]):
    """What is asked, how its answer is read, and what is asked again where it can't be."""

    messages: tuple[Message, ...]
    reading: Callable[[str], Meaning]
    """Raises UnreadableAnswer."""
    reminder: str
    """With `{problem}` where it says what was wrong."""
    who: str
    tries: int

    def read(self, text: str) -> Meaning:
        """What an answer means. Raises UnreadableAnswer."""
        if len(text) > MAX_ANSWER_CHARS:
            raise UnreadableAnswer(f"the answer has more than {MAX_ANSWER_CHARS} characters")
        return self.reading(text)

    def remind(self, problem: str) -> str:
        """What is asked again after an answer that can't be read."""
        return prompt.reminder(self.reminder, problem)


async def interview(agent: Agent, question: JudgeQuestion[Meaning], conversation: str = "main") -> Answer[Meaning]:
    """The agent's answer to a question, in a conversation begun anew. Raises Unparsed, and what the agent raises."""
    said, problem, reply = question.messages, "", ModelReply(text="", model="", tries=0)
    while reply.tries < question.tries:
        action = await agent.act(Observation(messages=said, conversation=conversation, fresh=reply.tries == 0))
        reply = ModelReply(text=action.content, model="", tries=reply.tries + 1)
        try:
            return Answer(question.read(reply.text), reply)
        except UnreadableAnswer as unreadable:
            problem = str(unreadable)
            said = (Message(role="user", content=question.remind(problem)),)
    raise Unparsed(question.who, problem, reply)

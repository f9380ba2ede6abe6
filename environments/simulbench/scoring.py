"""Has a judge rate a response (SimulBench, arXiv 2409.07641, Appendix B.4)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from pydantic import JsonValue

from environments.simulbench import prompt, reply
from environments.simulbench.judges import MAX_ANSWER_CHARS, TRIES, Judges, Unparsed, question
from environments.simulbench.prompt import PublishedJudge
from environments.simulbench.records import Script
from environments.simulbench.reply import Profile
from environments.simulbench.summary import GIVEN_PROMPT_NOTE, OWN_PROMPT_NOTE
from proctor.llm.cached_model import key_of
from proctor.session.kept_replies import ModelReply
from proctor.types import JUDGEMENTS, Finish, FinishReason, Judgements, Message, Value

Direction = Literal["both", "random"]


class Setting(Value):
    """The environment's fields that shape its sessions and how they are judged."""

    data: Path | None
    types: Path | None
    task_config: Path | None
    profile: Profile
    system: str | None
    ensure_ascii: bool
    max_response_chars: int
    direction: Direction
    count: Literal[20] = 20
    """A field of version 0.2.0, which is in its digests."""
    judged_by: str
    """Name of the judge for notes: the rules, or the model."""
    published: PublishedJudge | None
    """The judge prompt of the file `prompts`; None for our own."""

    @property
    def prompt_note(self) -> str:
        """The note on the judge's prompt."""
        return OWN_PROMPT_NOTE if self.published is None else GIVEN_PROMPT_NOTE

    def reminder(self, text: str) -> str | None:
        """The reminder after an unreadable answer of a judge; none in `compat`, as published: it is asked again."""
        return None if self.profile == "compat" else text

    @property
    def tries(self) -> int:
        """Limit of answers requested from a judge for one question."""
        return TRIES[self.profile]


class Response(NamedTuple):
    """An agent's reply."""

    content: str
    text: str
    """The content for the judge, without quotes around it and cut at a limit."""
    chars_cut: int

    @classmethod
    def of(cls, content: str, limit: int) -> "Response":
        """The content as a response with at most `limit` characters of text."""
        text = reply.unquoted(content)
        return cls(content, text[:limit], max(0, len(text) - limit))


async def judged(script: Script, response: Response, setting: Setting, judges: Judges) -> Finish:
    """The finish with the rating of the last response, of several judges the median of theirs (of two, their mean).

    Raises Unparsed, EnvironmentFault, also where one of several judges gives no rating.
    """
    messages = _messages(script, response.text, setting)
    reminder = setting.reminder(prompt.RATING_REMINDER)
    asked = question(messages, partial(reply.rating, profile=setting.profile), reminder, setting.tries)

    def detail(judgement: ModelReply) -> dict[str, JsonValue]:
        return {
            "response": response.text,
            "chars_cut": response.chars_cut,
            "judge": judgement.model,
            "judge_text": judgement.text[:MAX_ANSWER_CHARS],
            "judge_tries": judgement.tries,
            "judge_prompt_tokens": judgement.prompt_tokens,
            "judge_completion_tokens": judgement.completion_tokens,
            "prompt_hash": key_of(messages),
            "trajectory": key_of(setting.system, script.dialogue_history, response.content, judgement.text),
        }

    try:
        answers = await judges.rate(asked, script, response.text, setting.profile)
    except Unparsed as unparsed:
        unparsed.detail.pop("text")
        unparsed.detail |= detail(unparsed.reply)
        raise
    ratings = tuple(answer.meaning for answer in answers)
    rating, told = median(ratings), detail(_together(judges.names, [answer.reply for answer in answers]))
    if len(ratings) > 1:
        judgements = Judgements(scale="rating", judges=judges.names, rows=(ratings,))
        told |= {JUDGEMENTS: judgements.model_dump(mode="json")}
    score = min(1.0, max(0.0, (rating - 1) / 9))
    return Finish(reason=FinishReason.COMPLETED, score=score, metrics={"rating": rating}, detail=told)


def _together(names: Sequence[str], replies: Sequence[ModelReply]) -> ModelReply:
    """One judge's reply as it is; of several their names and texts, and what all cost."""
    if len(replies) == 1:
        return replies[0]
    limit = MAX_ANSWER_CHARS // len(replies)
    texts = (f"{name}: {each.text[:limit]}" for name, each in zip(names, replies, strict=True))
    counted = ("tries", "prompt_tokens", "completion_tokens")
    sums = {field: sum(getattr(each, field) for each in replies) for field in counted}
    return ModelReply(text="\n\n".join(texts), model=", ".join(names), **sums)


def _messages(script: Script, response: str, setting: Setting) -> tuple[Message, ...]:
    if setting.published is not None:
        return setting.published.asks(script, response, ensure_ascii=setting.ensure_ascii)
    return prompt.rating(script.dialogue_history, response, ensure_ascii=setting.ensure_ascii)

"""Has a judge rate a response (SimulBench, arXiv 2409.07641, Appendix B.4)."""

from typing import NamedTuple

from pydantic import JsonValue

from environments.simulbench import prompt, reply
from environments.simulbench.judges.interview import MAX_ANSWER_CHARS, JudgeQuestion, Unparsed
from environments.simulbench.judges.judges import Judges
from environments.simulbench.records import Script
from environments.simulbench.stage import Setting
from proctor.llm.cache import key_of
from proctor.session.kept_replies import ModelReply
from proctor.types import Finish, FinishReason, Message


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
    """The finish with the judge's rating of the last response. Raises Unparsed, EnvironmentFault."""
    messages = _messages(script, response.text, setting)
    question = JudgeQuestion(
        messages,
        lambda text: reply.rating(text, setting.profile),
        setting.reminder(prompt.RATING_REMINDER),
        "judge",
        setting.tries,
    )

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
        answer = await judges.judge(script, response.text, setting.profile).ask(question)
    except Unparsed as unparsed:
        unparsed.detail.pop("text")
        unparsed.detail |= detail(unparsed.reply)
        raise
    return Finish(
        reason=FinishReason.COMPLETED,
        score=min(1.0, max(0.0, (answer.meaning - 1) / 9)),
        metrics={"rating": answer.meaning},
        detail=detail(answer.reply),
    )


def _messages(script: Script, response: str, setting: Setting) -> tuple[Message, ...]:
    if setting.published is not None:
        return setting.published.asks(script, response, ensure_ascii=setting.ensure_ascii)
    return prompt.rating(script.dialogue_history, response, ensure_ascii=setting.ensure_ascii)

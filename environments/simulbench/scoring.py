"""The judge rates a response (SimulBench, arXiv 2409.07641, Appendix B.4)."""

from typing import NamedTuple

from pydantic import JsonValue

from environments.simulbench import prompt
from environments.simulbench import reply as reading
from environments.simulbench.judges.interview import MAX_ANSWER_CHARS, JudgeQuestion, Unparsed
from environments.simulbench.judges.judges import Judges
from environments.simulbench.records import Script
from environments.simulbench.stage import Setting
from proctor.llm import ModelReply, key_of
from proctor.types import Finish, FinishReason, Message


class Response(NamedTuple):
    """What an agent said."""

    content: str
    text: str
    """As the judge is shown it: without the quotes around it, cut at a limit."""
    chars_cut: int

    @classmethod
    def of(cls, content: str, limit: int) -> "Response":
        """The content as a response of at most so many characters."""
        text = reading.unquoted(content)
        return cls(content, text[:limit], max(0, len(text) - limit))


async def judged(script: Script, response: Response, setting: Setting, judges: Judges) -> Finish:
    """The finish of a session whose last response is judged. Raises Unparsed, EnvironmentFault."""
    messages = _asked(script, response.text, setting)
    question = JudgeQuestion(
        messages, lambda text: reading.rating(text, setting.profile), prompt.RATING_REMINDER, "judge", setting.tries
    )

    def evidence(reply: ModelReply) -> dict[str, JsonValue]:
        return {
            "response": response.text,
            "chars_cut": response.chars_cut,
            "judge": reply.model,
            "judge_text": reply.text[:MAX_ANSWER_CHARS],
            "judge_tries": reply.tries,
            "judge_prompt_tokens": reply.prompt_tokens,
            "judge_completion_tokens": reply.completion_tokens,
            "prompt_hash": key_of(messages),
            "trajectory": key_of(setting.system, script.dialogue_history, response.content, reply.text),
        }

    try:
        answer = await judges.judge(script, response.text, setting.profile).ask(question)
    except Unparsed as unparsed:
        unparsed.detail.pop("text")
        unparsed.detail |= evidence(unparsed.reply)
        raise
    return Finish(
        reason=FinishReason.COMPLETED,
        score=min(1.0, max(0.0, (answer.meaning - 1) / 9)),
        metrics={"rating": answer.meaning},
        detail=evidence(answer.reply),
    )


def _asked(script: Script, response: str, setting: Setting) -> tuple[Message, ...]:
    if setting.published is not None:
        return setting.published.asks(script, response, ensure_ascii=setting.ensure_ascii)
    return prompt.rating(script.dialogue_history, response, ensure_ascii=setting.ensure_ascii)

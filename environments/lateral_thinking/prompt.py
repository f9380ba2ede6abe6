"""The agent's prompts, in the language of the puzzle; the agent is the solver.

The rules are those of AgentBench's instruction (arXiv 2308.03688, Appendix F.4), in our own words.
"""

from environments.lateral_thinking.dataset import Language
from environments.lateral_thinking.host import Answer
from proctor.types import Value

ROUNDS = 25


class CallTexts(Value):
    """The texts of protocol `tools` that differ from those of `text`."""

    system: str
    """The rules, and how to ask."""
    story: str
    """The first user message, with `{story}` in place of the story."""
    ask: str
    """What the function `ask` does."""
    question: str
    """What its argument is."""


class SolverTexts(Value):
    """All texts for the solver, and the phrases that it must not use."""

    instruction: str
    """With `{story}` in place of the story."""
    answers: dict[Answer, str]
    go_on: str
    """The hint after a forbidden phrase."""
    in_story: str
    """The hint after a question that only repeats the story."""
    guess: str
    """The hint after a question for the reason."""
    forbidden: tuple[str, ...]
    """Phrases that show that a solver has stopped playing (AgentBench v0.2)."""
    why: str
    """The beginning of a question for the reason, as a regular expression."""


_ENGLISH_RULES = """\
You are the player of a lateral thinking puzzle, a game of deduction that is also called a situation puzzle. Its rules:
1. The game opens with a tale, the "story". You ask about it what a "yes", a "no" or an "irrelevant" can answer, and \
so work out what is behind it, the "truth".
2. Every answer leaves fewer possibilities, until the truth is the only one.
3. One question at a time.
4. You are a player: it is not for you to declare the game over, to stop reasoning, or to call for another game.
5. Don't repeat what the story says already.
6. Don't ask "why" something in the story is so. Guess the truth yourself.
7. Don't inquire into the story outright. Draw your own conclusions.

Reason with everything you have been told. Ask only what "yes", "no" or "irrelevant" can answer, one question each \
time."""

_ENGLISH_STORY = """\
The story:
{story}

Begin to guess the truth; your questions will be answered. Once more: "yes", "no" or "irrelevant" must be able to \
answer them."""

_CHINESE_RULES = """\
你是海龟汤游戏的玩家。海龟汤又叫情境猜谜，是一种推理游戏。规则如下：
1. 游戏从一段故事开始，这叫“汤面”，其中的关键没有讲出来。请针对汤面提问，问题要能用“是”、“不是”或“无关”回答，\
从而猜出背后的真相，也就是“汤底”。
2. 每得到一个回答，可能性就少一些，最后只剩下真相。
3. 一次只问一个问题。
4. 你是玩家：不能自己宣布游戏结束，不能停止推理，也不能要求换一个游戏。
5. 不要把汤面里讲过的事情再说一遍。
6. 不要问汤面里的事“为什么”会这样，要自己去猜。
7. 不要直接打听汤底，要自己推断。

请用上你知道的一切来推理。只提能用“是”、“不是”或“无关”回答的问题，一次一个。"""

_CHINESE_STORY = """\
汤面：
{story}

请开始猜汤底，我会回答你的问题。再提醒一次：问题要能用“是”、“不是”或“无关”来回答。"""

SOLVER_TEXTS: dict[Language, SolverTexts] = {
    "en": SolverTexts(
        instruction=f"{_ENGLISH_RULES}\n{_ENGLISH_STORY}",
        answers={"yes": "Yes.", "no": "No.", "irrelevant": "Irrelevant."},
        go_on='Go on guessing the truth of the story: ask something that "yes", "no" or "irrelevant" can answer.',
        in_story="The story says so already. Ask something else.",
        guess="I can't tell you reasons. Guess one, and ask me whether it is right.",
        forbidden=(
            "new story",
            "other story",
            "new game",
            "other game",
            "new question",
            "other question",
            "new round",
            "other round",
            "Great job",
            "further question",
        ),
        why=r"\W*(?:so |but |and |then )?why\b",
    ),
    "zh": SolverTexts(
        instruction=f"{_CHINESE_RULES}\n{_CHINESE_STORY}",
        answers={"yes": "是", "no": "不是", "irrelevant": "无关"},
        go_on="请继续猜故事的真相：提一个可以用“是”、“不是”或“无关”回答的问题。",
        in_story="故事里已经说过这一点了。请换一个问题。",
        guess="我不能告诉你原因。请你猜一个原因，再问我对不对。",
        forbidden=("感谢", "谢谢", "再见"),
        why=r"\W*(?:那么|那|但是|可是)?(?:请问)?(?:为什么|为何|为啥)",
    ),
}

CALL_TEXTS: dict[Language, CallTexts] = {
    "en": CallTexts(
        system=f"{_ENGLISH_RULES}\nPut every question by calling the function `ask`, exactly once in each turn. You "
        "may think first, but a reply without a call asks nothing and costs a turn.",
        story=_ENGLISH_STORY,
        ask='Asks the host one question about the story. The result is its answer: "yes", "no" or "irrelevant".',
        question="One question on one line.",
    ),
    "zh": CallTexts(
        system=f"{_CHINESE_RULES}\n每次都请调用函数 `ask` 来提问，每轮只调用一次。可以先思考，"
        "但没有调用函数的回复不算提问，仍要占用一轮。",
        story=_CHINESE_STORY,
        ask="就汤面向主持人提一个问题，结果是主持人的回答：“是”、“不是”或“无关”。",
        question="一个问题，写成一行。",
    ),
}

"""What the solver is told, in the language of the puzzle.

The rules are those of AgentBench's instruction (arXiv 2308.03688, Appendix F.4), in our own words.
"""

from environments.lateral_thinking.dataset import Language
from environments.lateral_thinking.host import Answer
from environments.types import Value

ROUNDS = 25


class Wording(Value):
    """All texts a solver meets, and the phrases it must not use."""

    instruction: str
    """With `{story}` where the story belongs."""
    answers: dict[Answer, str]
    go_on: str
    """The hint after a forbidden phrase."""
    in_story: str
    """The hint after a question that only repeats the story."""
    guess: str
    """The hint after a question for the reason."""
    forbidden: tuple[str, ...]
    """Phrases of a solver that has stopped playing (AgentBench v0.2)."""
    why: str
    """How a question for the reason begins, as a regular expression."""


_ENGLISH = """\
Let us play a game of lateral thinking. You are the solver, I am the host. I tell you a story in which something \
strange happens; I know the truth behind it, and you have to find out what it is.
The rules:
1. You learn the story below. Why things happened as they did is hidden from you; I know it.
2. You find the truth by asking me questions.
3. I answer each question with "Yes", "No" or "Irrelevant", and with nothing else.
4. So ask only what can be answered in this way. I never say why; reasons are yours to guess, and to check by asking.
5. Ask one question at a time, on a single line, and wait for my answer.
6. Build on the story and on all my answers so far: try one idea after another, from the broad ones to the details, \
and put what you believe to be the truth into questions until every part of it is confirmed.
7. There is this one story only, and 25 questions at most. Go on with it to the end: don't ask for another game, and \
don't stop because you think that you know the solution.
The story:
{story}
Now ask your first question."""

_CHINESE = """\
我们来玩一个海龟汤游戏。你负责解谜，我是主持人。我会讲一个情节离奇的故事，我知道故事背后的真相，你的任务是把真相找出来。
规则如下：
1. 你只知道下面的故事。事情为什么会这样，你还不清楚，而我知道。
2. 你通过向我提问来找到真相。
3. 对每个问题，我只回答“是”、“不是”或“无关”，不说别的。
4. 因此只能提可以这样回答的问题。我不会解释原因；原因要由你来猜，再用问题加以验证。
5. 每次只提一个问题，写在一行里，然后等我回答。
6. 根据故事和我已经给出的全部回答来思考：从大的方向到细节，一个想法接一个想法地尝试，把你认为的真相放进问题里，\
直到每一部分都得到证实。
7. 只有这一个故事，最多提25个问题。请一直玩到最后：不要换别的游戏，也不要因为觉得已经知道答案就停下来。
故事：
{story}
现在请提第一个问题。"""

WORDINGS: dict[Language, Wording] = {
    "en": Wording(
        instruction=_ENGLISH,
        answers={"yes": "Yes.", "no": "No.", "irrelevant": "Irrelevant."},
        go_on="The truth of this story is not found yet. Go on guessing: ask what I can answer with yes or no.",
        in_story="The story says so already. Ask about something that it does not tell.",
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
    "zh": Wording(
        instruction=_CHINESE,
        answers={"yes": "是", "no": "不是", "irrelevant": "无关"},
        go_on="这个故事的真相还没有找到。请继续猜：提一个我可以用“是”或“不是”回答的问题。",
        in_story="故事里已经说过这一点了。请问故事里没有讲到的事情。",
        guess="我不能告诉你原因。请你猜一个原因，再问我对不对。",
        forbidden=("感谢", "谢谢", "再见"),
        why=r"\W*(?:那么|那|但是|可是)?(?:请问)?(?:为什么|为何|为啥)",
    ),
}

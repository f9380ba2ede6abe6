"""The built-in policies: the reference, a weak heuristic and a random one."""

import random
from collections.abc import Sequence

from environments.lateral_thinking.dataset import Language, Puzzle
from environments.lateral_thinking.text import sentences, words
from proctor.environment import Policy
from proctor.types import Action, Message

_USUAL: dict[Language, tuple[str, ...]] = {
    "en": (
        "Did somebody die?",
        "Was the man blind?",
        "Did it happen at night, in the dark?",
        "Was somebody ill?",
        "Did the person kill himself?",
        "Was somebody murdered?",
        "Was it an accident?",
        "Did somebody take one thing for another?",
        "Is it part of the person's work?",
        "Is one of them an animal?",
        "Was it raining, or snowing?",
        "Did the ice melt?",
        "Were they on a ship at sea?",
        "Did the person see a reflection in a mirror or in glass?",
        "Was there a power failure, so that the lights went out?",
        "Was it only a dream, a film or a play?",
        "Did somebody steal something?",
        "Did he drink alcohol?",
        "Are they husband and wife?",
        "Is a child the person of whom the story tells?",
        "Did the person hear a noise?",
        "Did somebody lie?",
        "Was somebody afraid?",
        "Did he lose a part of his body?",
        "Was a machine broken?",
    ),
    "zh": (
        "有人死了吗？",
        "主人公是盲人吗？",
        "事情发生在夜晚吗？",
        "有人生病了吗？",
        "他是自杀的吗？",
        "有人被杀死了吗？",
        "这是一场意外吗？",
        "他把一样东西误认为另一样东西了吗？",
        "这和他的工作有关吗？",
        "主人公是一只动物吗？",
        "当时在下雨或者下雪吗？",
        "冰融化了吗？",
        "他们在海上的船里吗？",
        "他看见的是镜子或玻璃里的人影吗？",
        "是因为停电，灯熄了吗？",
        "这只是一场梦或者一场表演吗？",
        "有人偷了东西吗？",
        "他喝了很多酒吗？",
        "他们是夫妻，丈夫和妻子吗？",
        "主人公是小孩吗？",
        "他听见了声音吗？",
        "有人骗了他吗？",
        "有人被吓坏了吗？",
        "他失去了身体的一部分吗？",
        "是机器停止运行了吗？",
    ),
}
"""Questions that fit any puzzle; many truths are among them."""


def reference(puzzle: Puzzle) -> Policy:
    """Asks the key points, one after the other, then the last one again and again."""
    return asking(puzzle.keys[-1:], first=puzzle.keys)


def naive(puzzle: Puzzle) -> Policy:
    """Asks questions that fit any puzzle, each with the next sentence of the story before it."""
    parts = sentences(puzzle.story) or [puzzle.story]
    colon = "：" if puzzle.language == "zh" else ": "
    usual = enumerate(_USUAL[puzzle.language])
    return asking([f"{' '.join(parts[turn % len(parts)].split())}{colon}{question}" for turn, question in usual])


def chance(puzzle: Puzzle, seed: int) -> Policy:
    """Asks about two random words of the story."""
    subjects = sorted(words(puzzle.story, puzzle.language))

    def act(_: str, transcript: Sequence[Message]) -> Action:
        dice = random.Random(f"{puzzle.id}:{seed}:{_asked(transcript)}")
        one, other = dice.choice(subjects), dice.choice(subjects)
        if puzzle.language == "zh":
            return Action(content=f"这是关于{one}和{other}的吗？")
        return Action(content=f"Is it about {one} and {other}?")

    return act


def asking(questions: Sequence[str], first: Sequence[str] = ()) -> Policy:
    """Asks the questions in `first` once, then `questions` over and over."""

    def act(_: str, transcript: Sequence[Message]) -> Action:
        turn = _asked(transcript)
        return Action(content=first[turn] if turn < len(first) else questions[(turn - len(first)) % len(questions)])

    return act


def _asked(transcript: Sequence[Message]) -> int:
    return sum(message.role == "assistant" for message in transcript)

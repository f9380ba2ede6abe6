"""The published prompts that users bring: how each file is read, what agents are then told, and what compares."""

import json
from pathlib import Path

import pytest

from environments.alfworld.environment import ALFWorld
from environments.alfworld.published_prompt import EXAMPLES
from environments.database import prompt as database
from environments.database.environment import Database
from environments.knowledge_graph import prompt as graph
from environments.knowledge_graph.environment import KnowledgeGraph
from environments.operating_system import prompt as shell
from environments.operating_system.prompt import opening
from environments.webshop.environment import WebShop
from proctor.environment import AgentUnavailable, Environment
from proctor.published import Opening, Source, fingerprint
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Message
from tests.scripted_agent import Scripted

GRAPH = '''
INSTRUCTIONS = """
Seven tools."""
ONE_SHOT = [
    """Question: who?""",
    """Thought: so.
Final Answer: #3"""]
class KnowledgeGraph(Task):
    async def start_sample(self, index, session):
        session.inject({
            "role": "user",
            "content": INSTRUCTIONS
        })
        session.inject({"role": "agent", "content": "Understood."})
        for idx, shot in enumerate(ONE_SHOT):
            session.inject({"role": "user", "content": shot})
        session.inject({"role": "user",
                        "content": "A new question: " + question + "\\nEntities: " + f"[{entities}]"})
        session.inject({"role": "user", "content": "Invalid variable id!"})
'''
SHELL = '''
ONE_SHOT = [
    {"role": "user", "content": "how many?"},
    {"role": "agent", "content": "Act: bash" "\\nls"},
    {"role": "user", "content": "The output of the OS:\\n2"},
    {"role": "agent", "content": "Act: answer(2)"},
]
class OSInteraction(Task):
    def execute(self):
        output += line
    async def _judge(self, session, config):
        session.inject({"role": "user", "content": """You are a person.\\n\\n"""})
        if not oneshot:
            session.history[-1].content += ("My problem is:\\n\\n" + config.description)
        else:
            session.history[-1].content += ("My problem is:\\n\\n" + ONE_SHOT[0]["content"])
            for item in ONE_SHOT[1:]:
                session.inject(item)
            session.inject({"role": "user", "content": "A new OS. My problem is:\\n\\n" + config.description})
        session.inject({"role": "user", "content": ("The output:\\n\\n" + result) if result else "Empty."})
'''
HOUSE = """
class ALFWorld(Task):
    @staticmethod
    def get_task_instruction():
        # return "an older one"
        return "Act in a house.\\n"
    async def alfworld_run(self, session, env):
        session.inject({"role": "user", "content": self.get_task_instruction()})
        session.inject({"role": "agent", "content": "OK."})
"""
GAMES = {name: [f"You see a {name}.", "ACTION: look", "Nothing.", "ACTION: done"] for name in (
    "put", "clean", "heat", "cool", "puttwo", "examine")}  # fmt: skip
LIST = [
    {"role": "user", "content": "Ask."},
    {"role": "agent", "content": "Yes."},
]


async def first_told(environment: Environment) -> list[tuple[str, str]]:
    listener = Scripted(AgentUnavailable("it only listens"))
    async with environment.lifespan():
        await play_to_finish(environment, environment.samples()[0], listener)
    return [(message.role, message.content) for message in listener.seen[0].messages]


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def house(folder: Path) -> Path:
    write(folder / "task.py", HOUSE)
    write(folder / EXAMPLES, GAMES)
    return folder


async def test_a_graph_agent_is_told_what_the_published_file_says(tmp_path: Path) -> None:
    environment = KnowledgeGraph(prompts=write(tmp_path / "task.py", GRAPH))
    told = await first_told(environment)
    assert told[:-1] == [
        ("user", "\nSeven tools."),
        ("assistant", "Understood."),
        ("user", "Question: who?"),
        ("assistant", "Thought: so.\nFinal Answer: #3"),
    ]
    assert told[-1] == (await first_told(KnowledgeGraph()))[-1]
    assert told[-1][1].startswith("A new question: ")
    assert any(
        "calls that can't be executed are in Proctor's words" in note for note in environment.summarize([]).notes
    )


def test_a_shell_agent_is_told_what_the_published_file_says(tmp_path: Path) -> None:
    read = shell.PROMPT.read(write(tmp_path / "task.py", SHELL))
    assert [(each.role, each.content) for each in opening("Count it.", read)] == [
        ("user", "You are a person.\n\nMy problem is:\n\nhow many?"),
        ("assistant", "Act: bash\nls"),
        ("user", "The output of the OS:\n2"),
        ("assistant", "Act: answer(2)"),
        ("user", "A new OS. My problem is:\n\nCount it."),
    ]


async def test_a_house_agent_is_told_what_the_published_folder_says(tmp_path: Path) -> None:
    environment = ALFWorld(prompts=house(tmp_path))
    told = await first_told(environment)
    assert told[:2] == [("user", "Act in a house.\n"), ("assistant", "OK.")]
    assert told[2:6] == [
        ("user", f"Here is one example.\n{GAMES['put'][0]}"),
        ("assistant", "ACTION: look"),
        ("user", "Nothing."),
        ("assistant", "ACTION: done"),
    ]
    assert told[6] == (await first_told(ALFWorld()))[-1]


async def test_the_references_solve_samples_behind_any_prompt(tmp_path: Path) -> None:
    file = write(tmp_path / "longer.json", LIST * 4)
    fields: list[tuple[Environment, Path]] = [
        (Database(engine="sqlite", prompts=file), file),
        (KnowledgeGraph(prompts=file), file),
        (ALFWorld(prompts=house(tmp_path / "house")), file),
        (WebShop(prompts=file, cache=tmp_path / "cache"), file),
    ]
    for environment, _ in fields:
        async with environment.lifespan():
            for sample in environment.samples()[:3]:
                policy = environment.reference(sample)
                assert policy is not None
                finish = await play_to_finish(environment, sample, PolicyAgent(policy))
                assert finish.score == 1.0, finish


@pytest.mark.parametrize(
    ("source", "text", "problem"),
    [
        (database.PROMPT, "x = 1", "the last message is not the agent's"),
        (database.PROMPT, 'session.inject({"role": "system", "content": "x"})', "0.role: must be"),
        (graph.PROMPT, GRAPH.replace("ONE_SHOT = [", "ONE_SHOT = other + ["), ""),
        (shell.PROMPT, SHELL.replace("ONE_SHOT = [", "ONE_SHOT = other + ["), "the last message is not the agent's"),
        (shell.PROMPT, "ONE_SHOT = 1", "the last message is not the agent's"),
        (shell.PROMPT, "ONE_SHOT = []", "the last message is not the agent's"),
    ],
)
def test_a_python_file_of_another_layout_is_refused_or_told_apart(
    source: Source, text: str, problem: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "task.py", text)
    if not problem:
        assert source.differs(file, source.read(file)) is not None
        return
    with pytest.raises(ValueError, match=r"task\.py: .*; give AgentBench v0\.2's") as refused:
        source.read(file)
    assert problem in str(refused.value)


def test_words_are_the_published_ones_or_not_or_unknown() -> None:
    told = Opening((Message(role="user", content="a"),), "b")
    known = Source("FILE", frozenset((fingerprint(told),)))
    assert known.differs(Path("x"), told) is None
    assert "x: other words than the published ones; give FILE" in str(known.differs(Path("x"), told._replace(lead="c")))
    assert "Proctor's own words; give FILE as `prompts`" in str(known.differs(None, told))
    assert "can't be verified" in str(Source("FILE", frozenset()).differs(Path("x"), told))

"""What the agent is told before the first round: our own words, or those of a file; and when runs are comparable."""

import json
from pathlib import Path
from typing import Any

import pytest

from environments.webshop import prompt
from environments.webshop.catalogue import check_goals, store
from environments.webshop.catalogue.make import DATABASE
from environments.webshop.catalogue.product import Goal
from environments.webshop.environment import WebShop
from environments.webshop.prompt import PROMPT
from proctor.published import Opening, Source, fingerprint, records_hash
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Message

TOLD = [
    {"role": "user", "content": "You shop.\n"},
    {"role": "agent", "content": "Ok."},
    {"role": "user", "content": "Observation:\nShop"},
    {"role": "agent", "content": "Action:\nclick[it's it]"},
]
IN_PYTHON = '''
prompt: str = """
You shop. \\
Go on."""
OTHER = prompt + "x"


class WebShop(Task):
    async def start_sample(self, index, session):
        raise SystemExit("this file is never run")
        session.inject({"role": "user", "content": prompt})
        session.inject({"role": "agent", "content": "Ok."})
        session.inject({'role': 'user', 'content': 'Observation:\\n\\'Shop\\''})
        session.inject({'role': 'agent', 'content': 'Action:\\nclick[it]'})
        for _ in range(10):
            session.inject({"role": "user", "content": f"Observation:\\n{observation}"})
            session.inject(RewardHistoryItem(reward=0))
'''


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def told(environment: WebShop) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in environment._opening]


def test_a_json_list_is_taken_word_by_word(tmp_path: Path) -> None:
    assert told(WebShop(prompts=write(tmp_path / "mine.json", TOLD))) == [
        ("user" if each["role"] == "user" else "assistant", each["content"]) for each in TOLD
    ]


def test_a_file_like_the_published_one_is_read_and_never_run(tmp_path: Path) -> None:
    assert told(WebShop(prompts=write(tmp_path / "__init__.py", IN_PYTHON))) == [
        ("user", "\nYou shop. Go on."),
        ("assistant", "Ok."),
        ("user", "Observation:\n'Shop'"),
        ("assistant", "Action:\nclick[it]"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("p.json", "{", "the file: not JSON"),
        ("p.json", [{"role": "system", "content": ""}], "0.role: must be 'user' or 'agent'"),
        ("p.json", TOLD[:1], "the last message is not the agent's, nor an empty one"),
        ("p.json", TOLD[1:], "0.role: user and agent must alternate, the user first"),
        ("p.json", [], "the last message is not the agent's"),
        ("p.py", "x = 1", "the last message is not the agent's"),
        ("p.py", "x = (", ":1: '(' was never closed"),
        ("p.py", 'session.inject({"role": "user"})', "0.content: is missing"),
    ],
)
def test_a_file_that_cant_be_used_is_refused(name: str, content: object, problem: str, tmp_path: Path) -> None:
    file = write(tmp_path / name, content)
    with pytest.raises(ValueError, match=rf"{name}:.*give .*") as refused:
        WebShop(prompts=file, cache=tmp_path).samples()
    assert problem in str(refused.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no\.json: can't be read: .*; give AgentBench"):
        WebShop(prompts=tmp_path / "no.json", cache=tmp_path).samples()


async def test_an_agent_is_told_them_and_the_digest_and_notes_say_so(tmp_path: Path) -> None:
    mine = WebShop(prompts=write(tmp_path / "mine.json", TOLD), cache=tmp_path)
    seen: list[str] = []

    def policy(conversation: str, transcript: Any) -> Any:
        seen[:] = [message.content for message in transcript]
        return mine.reference("goal-00000")(conversation, transcript)

    async with mine.lifespan():
        finish = await play_to_finish(mine, "goal-00000", PolicyAgent(policy))
    assert seen[:4] == [each["content"] for each in TOLD]
    assert finish.score == 1.0
    own = WebShop(cache=tmp_path)
    assert mine.digest() != own.digest()
    assert [any("in our own words" in note for note in each.summarize([finish]).notes) for each in (own, mine)] == [
        True,
        False,
    ]


USUAL: dict[str, Any] = {
    "format": store.FORMAT,
    "products": 1_180_000,
    "goals": 12_087,
    "average_length": 100.0,
    "invented": False,
    "price_seed": 0,
    "nouns": "en_core_web_lg 3.7.1, spaCy 3.7.5",
    "files": {},
    "problems": {},
}


GOALS = [
    Goal(
        asin="B",
        instruction=f"i'd like {number} lamps, and price lower than 30.00 dollars",
        attributes=(),
        options=(),
        price_upper=30.0,
        category="c",
        query="q",
        name="n",
        product_category="p",
        nouns=(),
    )
    for number in range(500)
]


def why(folder: Path, meta: dict[str, object], **fields: object) -> str | None:
    """Why a run over a catalogue that says this of itself is not comparable."""
    folder.mkdir()
    connection = store.create(folder / DATABASE)
    store.finish(connection, GOALS, store.Meta.model_validate({**USUAL, **meta}))
    connection.close()
    usual = {"data": folder, "goals": (200, 280), "prompts": write(folder / "mine.json", TOLD)}
    return WebShop.model_validate({**usual, **fields}).not_comparable_because()


def test_only_the_published_words_nouns_goals_and_catalogue_are_comparable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "other words than the published ones" in str(why(tmp_path / "other", {}))
    known = frozenset((fingerprint(PROMPT.read(write(tmp_path / "mine.json", TOLD))),))
    monkeypatch.setattr("environments.webshop.environment.PROMPT", Source(PROMPT.file, known))
    assert "the goals 200 to 499 have other words" in str(why(tmp_path / "goals", {}))
    monkeypatch.setattr(check_goals, "PUBLISHED", records_hash(map(check_goals.words, GOALS[200:])))
    assert why(tmp_path / "same", {}) is None
    assert why(tmp_path / "test", {}, goals=(0, 200), candidates=1_000) is None
    cases: list[tuple[dict[str, object], dict[str, object], str]] = [
        ({}, {"prompts": None}, "in Proctor's own words; give AgentBench v0.2's src/server"),
        ({"nouns": "lexical 1"}, {}, "found by lexical 1, published ones by en_core_web_lg; index with --nouns"),
        ({"nouns": "en_core_web_sm 3.7.1"}, {}, "found by en_core_web_sm 3.7.1"),
        ({"goals": 12_000}, {}, "has 12000 goals, the published one 12087"),
        ({"products": 1_000}, {}, "has 1000 products"),
        ({}, {"goals": None}, "published scores are over the goals [0, 200]"),
        ({}, {"goals": (200, 204)}, "published scores are over the goals [0, 200]"),
        ({}, {"candidates": 50}, "scores 50 documents misses hits"),
        ({}, {"profile": "strict"}, "use compat"),
        ({"invented": True}, {}, "invented"),
    ]
    for number, (meta, fields, reason) in enumerate(cases):
        assert reason in str(why(tmp_path / str(number), meta, **fields)), (meta, fields)
    assert WebShop().published_sampling() == {"temperature": 0}


def test_our_own_words_are_not_the_published_ones() -> None:
    assert PROMPT.differs(Path("x"), Opening(prompt.opening())) is not None
    assert fingerprint(Opening((Message(role="user", content="a"),))) != fingerprint(Opening(()))

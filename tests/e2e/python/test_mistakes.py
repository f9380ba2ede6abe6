"""What can't be played from Python is said by a PlanError that names the field."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from proctor import (
    Agent,
    Environment,
    EnvironmentFault,
    Finish,
    Message,
    PlanError,
    Tool,
    evaluate,
    open_run,
    play,
)


def look(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    return "ACTION: look"


def wrong(value: object) -> Any:
    """A value of a type that no type checker would take."""
    return cast(Any, value)


class Closed(Environment):
    """One whose shared server can't be started."""

    names: tuple[str, ...] = ("one",)

    def samples(self) -> Sequence[str]:
        return self.names

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        raise EnvironmentFault("no server on this machine")
        yield

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        raise NotImplementedError


HERE = ["alfworld"]
MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: play("alfworld", "reference", sample="nowhere"), "sample: there is no 'nowhere'"),
    (lambda: play("alfworld", "wizard"), "agent: there is no 'wizard'"),
    (lambda: play("alfworld", wrong(3)), "agent: 3 is not a function"),
    (lambda: play(Closed(names=()), "reference"), "environment: it has no samples"),
    (lambda: play("alfworlds", "reference"), "unknown environment 'alfworlds'"),
    (lambda: play("alfworld", "reference", max_steps="many"), "max_steps"),
    (lambda: evaluate(agents=look, tasks=["nothing"]), "nothing"),
    (lambda: evaluate({"agents": [{"name": "a", "builtin": "naive"}]}), "tasks"),
    (lambda: evaluate("nowhere.yaml"), "nowhere.yaml"),
    (lambda: evaluate(agents=look, tasks=HERE, limit=0), "limit: must be 1 or more (got 0)"),
    (lambda: evaluate(agents=wrong(3), tasks=HERE), "agents: 3 is neither a function"),
    (lambda: evaluate(agents=wrong({"a": look, "b": "naive"}), tasks=HERE), "agents: 'b' is not a function"),
    (lambda: evaluate({"agents": [{"name": "a", "builtin": "naive"}]}, agents=[], tasks=HERE), "agents: "),
    (lambda: evaluate(agents=[look, look], tasks=HERE), "agents: two functions are called 'look'"),
    (lambda: evaluate(agents=look, tasks=HERE, overrides={"limits.run.tokens": wrong(Path("x"))}), "limits.run.tokens"),
    (lambda: evaluate(agents=look, tasks=HERE, name="a/b"), "a/b"),
    (lambda: evaluate(agents=look, tasks=HERE, folder="file"), "folder: "),
    (lambda: evaluate(agents=look, tasks=HERE, store="nonsense://x"), "store: "),
    (lambda: evaluate(agents=look, tasks=HERE, store="postgresql+psycopg://u@127.0.0.1:1/x"), "store: connection"),
    (lambda: open_run("never", folder="nowhere"), "never"),
    (lambda: open_run("garbage"), "file is not a database"),
]


@pytest.mark.parametrize(("make", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_what_cannot_be_played_is_said(
    make: Callable[[], object], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "runs/garbage").mkdir(parents=True)
    (tmp_path / "runs/garbage/run.sqlite").write_text("garbage" * 1000)
    with pytest.raises(PlanError, match=re.escape(words)):
        make()


def test_an_environment_that_cannot_start_is_a_fault() -> None:
    finish = play(Closed(), look)
    assert (finish.reason, finish.score) == ("task_error", None)
    assert finish.detail["cause"] == "EnvironmentFault: no server on this machine"

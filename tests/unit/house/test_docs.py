"""What the documentation quotes is what the files hold."""

import re
from pathlib import Path

import pytest

from proctor.conformance.check import check
from proctor.environment import Environment, PolicyAgent, play_to_finish
from tests.support import ROOT

GUIDE = (ROOT / "docs" / "your-own-environment.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("kind", "file"), [("toml", "pyproject.toml"), ("python", "guessing.py")])
def test_the_guide_quotes_the_example_package(kind: str, file: str) -> None:
    quotes = re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
    assert (ROOT / "examples" / "third_party" / file).read_text(encoding="utf-8") in quotes


def test_the_example_environment_is_short() -> None:
    assert len((ROOT / "examples" / "third_party" / "guessing.py").read_text(encoding="utf-8").splitlines()) <= 40


async def test_the_guides_further_methods_leave_no_promise_out() -> None:
    example, *_, further = re.findall(r"^```python\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
    written: dict[str, type[Environment]] = {}
    exec(f"{example}\nfrom proctor import Summary\n{further}", written)
    environment = written["MeasuredGuessing"]()
    assert [f"{result.name}: {result.detail}" async for result in check(environment) if result.state != "ok"] == []
    reference = environment.reference("game-0")
    assert reference is not None
    solved = await play_to_finish(environment, "game-0", PolicyAgent(reference))
    assert environment.summarize([solved]).metrics == {"found": 1.0, "out_of_guesses": 0.0}


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "environments").glob("*.md")), ids=lambda file: str(file.stem))
def test_no_line_about_an_environment_is_longer_than_120_characters(file: Path) -> None:
    """But for rows of tables, which can't be wrapped."""
    lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    assert [number for number, line in lines if len(line) > 120 and not line.startswith("|")] == []

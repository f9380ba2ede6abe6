"""What the documentation quotes is what the files hold."""

import re

import pytest

from tests.support import ROOT


@pytest.mark.parametrize(("kind", "file"), [("toml", "pyproject.toml"), ("python", "guessing.py")])
def test_the_guide_quotes_the_example_package(kind: str, file: str) -> None:
    guide = (ROOT / "docs" / "your-own-environment.md").read_text(encoding="utf-8")
    quotes = re.findall(rf"^```{kind}\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL)
    assert (ROOT / "examples" / "third_party" / file).read_text(encoding="utf-8") in quotes


def test_the_example_environment_is_short() -> None:
    assert len((ROOT / "examples" / "third_party" / "guessing.py").read_text(encoding="utf-8").splitlines()) < 80

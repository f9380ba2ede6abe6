"""The commands of README.md and scripts/, word by word."""

import re

from tests.support import ROOT


def blocks(section: str) -> list[str]:
    """The code blocks of a section of README.md."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    body = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^```\w*\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)
    assert found, section
    return found


def commands(block: str) -> list[str]:
    """The commands of a block, without their comments."""
    lines = (re.sub(r"\s+# .*", "", line).strip() for line in block.splitlines())
    return [line for line in lines if line]


INSTALL, EXPORT_KEY = commands(blocks("Your model")[0])


def demo() -> str:
    """The last command of `make demo`, which its set-up leads to."""
    return (ROOT / "scripts" / "demo.sh").read_text(encoding="utf-8").splitlines()[-1]

"""The house keeps its floors small and its names apart."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support import ROOT

PRODUCT = ("agent_server", "environments", "eval_client", "proctor", "task_server")
MOST_FILES = 15
OTHER_WORDS = {"actions", "answers", "checks", "compat", "judging", "match", "protocol", "reading", "reward"}
"""Files of other names are `reply.py` and `scoring.py` in every world."""


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in (ROOT / folder).rglob("*.py") if "samples" not in path.parts)


def test_no_folder_has_more_files_than_one_sees_at_a_glance() -> None:
    count = Counter(path.parent.relative_to(ROOT) for path in files(*PRODUCT, "tests"))
    assert {str(folder): n for folder, n in count.items() if n > MOST_FILES} == {}


def test_what_reads_replies_and_what_scores_is_called_so() -> None:
    assert [str(path.relative_to(ROOT)) for path in files(*PRODUCT) if path.stem in OTHER_WORDS] == []


def test_no_public_class_name_stands_twice() -> None:
    count = Counter(
        node.name
        for path in files(*PRODUCT)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, n in count.items() if n > 1] == []

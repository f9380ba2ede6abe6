"""A world from a file is identified by its tokens, those of what it imports from beside it, and the data it opens."""

import importlib
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from proctor.config.task import load_tasks
from proctor.own_files.loading import OwnFileError
from proctor.own_files.source import OwnSource, difference, given_source, world_source
from task_server.wire.messages import SampleList
from task_server.worker.hosted_task import read_samples

FILES = {
    "world.py": '''"""Questions."""
import json
from functools import cache
from pathlib import Path
from proctor import Environment
import helper

WORDS = Path(__file__).with_name("words.txt").read_text()

@cache
def rows(path):  # read once
    return [json.loads(line) for line in path.read_text().splitlines()]

class Questions(Environment):
    """Asks."""
    data: Path = Path("rows.jsonl")
    cached: Path = Path("cache.bin")
    most: int = 3
    operational = frozenset({"cached"})

    def samples(self):
        self.cached.read_bytes()
        return [row["id"] for row in rows(self.data)] + [f"{WORDS!r:>9}"]

    async def play(self, sample, agent, seed=0):
        from scores import exact
        import random
        return open(Path(__file__).with_name("only-played.txt"))
''',
    "helper.py": "from pkg.deep import X\n",
    "pkg/__init__.py": "",
    "pkg/deep.py": "X = 1\n",
    "scores.py": "def exact(): return 1\n",
    "random.py": "raise ValueError('not this one')\n",
    "unused.py": "Y = 1\n",
    "words.txt": "a",
    "rows.jsonl": '{"id": "1"}\n',
    "other.jsonl": '{"id": "2"}\n',
    "cache.bin": "c",
    "only-played.txt": "p",
    "tasks.yaml": "tasks: [{environment: ./world.py}]",
}
CHANGES = {
    "code": ("world.py", "most: int = 3", "most: int = 4", "world.py, line 18"),
    "comment": ("world.py", "# read once", "# read but once\n", ""),
    "layout": ("world.py", "rows(self.data)] +", "rows(\n            self.data\n        )] \\\n +", ""),
    "docstring": ("world.py", "Asks.", "Answers.", "world.py, line 15"),
    "a string with fields": ("world.py", "WORDS!r:>9", "WORDS!r:>8", "world.py, line 23"),
    "imported": ("helper.py", "X\n", "X as Y\n", "helper.py, line 1"),
    "imported by that": ("pkg/deep.py", "1", "2", "pkg/deep.py, line 1"),
    "imported in a function": ("scores.py", "return 1", "return 2", "scores.py, line 1"),
    "opened at import": ("words.txt", "a", "b", "words.txt, its contents"),
    "opened by samples": ("rows.jsonl", "1", "3", "rows.jsonl, its contents"),
    "only a cache": ("cache.bin", "c", "d", ""),
    "opened by play": ("only-played.txt", "p", "q", ""),
    "hidden by a module": ("random.py", "this", "that", ""),
    "not imported": ("unused.py", "1", "2", ""),
    "parameter": ("tasks.yaml", "world.py", "world.py, parameters: {most: 4}", "digest"),
    "data of the plan": ("tasks.yaml", "world.py", "world.py, data: other.jsonl", "other.jsonl is new"),
    "spelling": ("tasks.yaml", "./world.py", "world:Questions", ""),
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    path, known = list(sys.path), set(sys.modules)
    write(tmp_path / "a")
    yield tmp_path / "a"
    sys.path[:] = path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def write(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def listed(folder: Path) -> SampleList:
    (task,) = load_tasks(folder / "tasks.yaml")
    task.opened()  # as clients do before
    return read_samples(task.name, task.environment_label, task.build())


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_world_is_identified_by(change: str, folder: Path) -> None:
    name, old, new, where = CHANGES[change]
    before = listed(folder)
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    now = listed(folder)
    assert now.task == "questions"
    assert (now.digest == before.digest) == (where == "")
    assert difference(before.source, now.source) == where.replace("digest", "")


def test_it_does_not_depend_on_the_folder_or_on_other_tasks(folder: Path) -> None:
    write(folder.parent / "ß b")
    (folder / "tasks.yaml").write_text("tasks: [{environment: ./world.py, name: o, data: other.jsonl}]")
    listed(folder)
    (folder / "tasks.yaml").write_text(FILES["tasks.yaml"])
    first = listed(folder)
    for name in ("helper", "pkg", "pkg.deep", "scores"):
        sys.modules.pop(name, None)
    sys.path.remove(str(folder))
    assert listed(folder.parent / "ß b") == first


def test_a_module_of_another_worlds_folder_is_not_taken_for_ones_own(folder: Path) -> None:
    write(folder.parent / "b")
    listed(folder)
    with pytest.raises(OwnFileError, match=r"b/world.py:6: `helper` is .*a/helper.py here, not .*b/helper.py"):
        listed(folder.parent / "b")


CELL = """from proctor import Environment
ANSWER, LIMIT = "a", object()

def ask(): return ANSWER  # a comment

class Cell(Environment):
    def samples(self): return [ask()]
    async def play(self, sample, agent, seed=0): return LIMIT
"""


def cell(text: str) -> OwnSource:
    """The source of the class in a notebook's cell, which is in no file."""
    module = sys.modules["cells"] = ModuleType("cells")
    linecache.cache["<cell>"] = (len(text), None, text.splitlines(keepends=True), "<cell>")
    exec(compile(text, "<cell>", "exec"), vars(module))
    return world_source(module.Cell())


def test_a_world_without_a_file_is_identified_by_its_text_and_what_it_names() -> None:
    try:
        first = cell(CELL)
        assert cell(CELL.replace("a comment", "another")) == first
        assert first.files["LIMIT"] == "unchecked"
        for old, new, where in (
            ('"a"', '"b"', "ANSWER, its contents"),
            ("return ANSWER", "return str(ANSWER)", "ask, line 1"),
            ("return LIMIT", "return None, LIMIT", "Cell, line 3"),
        ):
            now = cell(CELL.replace(old, new))
            assert now.digest != first.digest
            assert difference(first.files, now.files) == where
    finally:
        del sys.modules["cells"]


def test_of_what_is_installed_the_modules_of_its_own_package_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "own_agent/__init__.py": "",
        "own_agent/answers.py": "import own_other\nfrom own_agent import words\ndef answer(messages, tools): ...\n",
        "own_agent/words.py": "WORD = 'a'\n",
        "own_other.py": "def answer(messages, tools): ...\n",
    }
    folder = tmp_path / "lib" / "site-packages"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(folder)
    try:
        found = given_source(importlib.import_module("own_agent.answers").answer)
        assert found is not None
        assert set(found.files) == files.keys() - {"own_other.py"}
    finally:
        for name in ("own_agent", "own_agent.answers", "own_agent.words", "own_other"):
            sys.modules.pop(name, None)

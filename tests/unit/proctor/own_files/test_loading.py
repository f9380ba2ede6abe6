"""Users' files are loaded by path and by module, each once, and what is wrong with one is said in a line."""

import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from proctor import registry
from proctor.own_files.loading import OwnFileError, admit, admit_world, named, task_name, world_class

WORLD = """from __future__ import annotations
from pathlib import Path
from proctor import Environment

class {name}(Environment):
    rows: Path = Path("rows.txt")
    def samples(self): return ["a"]
    async def play(self, sample, agent, seed=0): raise NotImplementedError
"""


@pytest.fixture(autouse=True)
def _own_import_path() -> Iterator[None]:
    path, known = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('___', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_every_spelling_of_a_class_is_the_same_class(tmp_path: Path) -> None:
    folder = write(tmp_path / "my wörlds", trivia=WORLD.format(name="Trivia"))
    (tmp_path / "link.py").symlink_to(folder / "trivia.py")
    spellings = ["./trivia.py", "./trivia.py:Trivia", "trivia:Trivia", str(folder / "trivia.py"), "../link.py"]
    found = [registry.load(admit(each, folder)) for each in spellings]
    assert found == [found[0]] * 5
    assert {admit_world(each, folder) for each in spellings} == {f"{folder}/trivia.py:Trivia"}


def test_a_file_beside_hides_no_module(tmp_path: Path) -> None:
    text = "import io, random, helper\n" + WORLD.format(name="Trivia").removeprefix(
        "from __future__ import annotations\n"
    )
    write(tmp_path, trivia=text, random="raise ValueError", io="raise ValueError", helper="HERE = 1")
    module = sys.modules[world_class(admit("./trivia.py", tmp_path)).__module__]
    assert module.__dict__["helper"].HERE == 1
    assert sys.path[-1] == str(tmp_path)


def test_a_file_of_a_package_has_its_relative_imports(tmp_path: Path) -> None:
    text = WORLD.format(name="Trivia") + "from .words import WORDS\nfrom my_worlds.deep import DEEP\n"
    write(
        tmp_path,
        my_worlds_____init__="",
        my_worlds___trivia=text,
        my_worlds___words="WORDS = 1",
        my_worlds___deep="DEEP = 1",
    )
    assert world_class(admit("my_worlds/trivia.py", tmp_path)).__module__ == "my_worlds.trivia"


def test_what_it_prints_at_import_is_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world_class(admit("./w.py", write(tmp_path, w=WORLD.format(name="W") + "print('hello')\n")))
    assert capsys.readouterr() == ("", "hello\n")


def test_an_edited_file_is_loaded_anew_and_another_one_not(tmp_path: Path) -> None:
    reference = admit(
        "./w.py", write(tmp_path, w="import near\n" + WORLD.format(name="W").partition("\n")[2], near="N = 1")
    )
    first = world_class(reference)
    assert world_class(reference) is first
    write(tmp_path, near="N = 22")
    assert sys.modules[world_class(reference).__module__].__dict__["near"].N == 22


def test_what_only_a_store_names_is_not_loaded(tmp_path: Path) -> None:
    write(tmp_path, w="raise SystemExit('it ran')")
    for reference in (f"{tmp_path}/w.py", f"{tmp_path}/w.py:W", "w:W", "-:W"):
        with pytest.raises(OwnFileError, match="only a store names it"):
            registry.load(reference)


MISTAKES = {
    "syntax": ("x = 1\ndef f(:\n", "w.py:2: invalid syntax"),
    "import": ("\nimport no_such_thing\n", "w.py:2: there is no module 'no_such_thing'"),
    "raises": (
        "def f():\n    raise KeyError('x')\nf()\n",
        "w.py:2: KeyError: 'x'\n  *w.py:3 in <module>: f()\n  *w.py:2 in f: raise KeyError",
    ),
    "exits": ("import sys\nsys.exit(3)\n", "w.py:2: SystemExit: 3"),
    "none": ("x = 1\n", "w.py: defines no class of Environment"),
    "imported": (
        "from other import Other\n",
        "w.py: defines no class of Environment; it imports Other: to play that, write *w.py:Other",
    ),
    "two": (
        WORLD.format(name="A") + WORLD.format(name="B").partition("\n")[2],
        "w.py: defines several worlds: A (line 5), B (line *); write *w.py:A",
    ),
    "abstract": (
        "from proctor import Environment\nclass W(Environment):\n    def samples(self): return []\n",
        "w.py:2: class W lacks `play`; define it",
    ),
    "annotation": (
        WORLD.format(name="W").replace("rows: Path", "rows: Pth"),
        "w.py:5: class W: name 'Pth' is not defined",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_wrong_with_a_file_is_said_in_a_line(mistake: str, tmp_path: Path) -> None:
    text, said = MISTAKES[mistake]
    write(tmp_path, w=text, other=WORLD.format(name="Other"))
    with pytest.raises(OwnFileError) as raised:
        world_class(admit("./w.py", tmp_path))
    assert fnmatch(str(raised.value), f"*/{said}*"), raised.value


def test_other_mistakes_in_a_name(tmp_path: Path) -> None:
    write(tmp_path, w=WORLD.format(name="W") + "def answer(messages, tools): return ''\n", environments_____init__="")
    write(tmp_path, environments___w=WORLD.format(name="W"))
    for reference, said in {
        "./none.py": "none.py: there is no such file",
        "./w.py:Wx": "w.py: there is no Wx; it defines: W, answer",
        "./w.py:answer": "w.py:9: answer is no class of Environment",
        "no_such_thing:W": "no_such_thing: there is no module 'no_such_thing'",
        "environments/w.py": "its package is called 'environments', as one of Proctor's own; rename the folder",
    }.items():
        with pytest.raises(OwnFileError, match=said):
            world_class(admit(reference, tmp_path))
    assert callable(named(admit("./w.py:answer", tmp_path)))


def test_names_of_tasks() -> None:
    assert [task_name(f"w.py:{name}") for name in ("Trivia", "TriviaNight", "HTTPWorld", "Q2A")] == [
        "trivia",
        "trivia_night",
        "http_world",
        "q2_a",
    ]

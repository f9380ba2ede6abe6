"""The house keeps its floors small and its names apart."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx

from tests.support import ROOT

PRODUCT = ("agent_server", "environments", "eval_client", "proctor", "task_server")
OURS = (*PRODUCT, "packages/bridges", "packages/ray")
MOST_FILES = 15
OTHER_WORDS = {"actions", "answers", "checks", "compat", "judging", "match", "protocol", "reading", "reward"}
"""Files of other names are `reply.py` and `scoring.py` in every world."""


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in (ROOT / folder).rglob("*.py") if "samples" not in path.parts)


def test_no_folder_has_more_files_than_one_sees_at_a_glance() -> None:
    count = Counter(path.parent.relative_to(ROOT) for path in files(*OURS, "tests"))
    assert {str(folder): n for folder, n in count.items() if n > MOST_FILES} == {}


def test_what_reads_replies_and_what_scores_is_called_so() -> None:
    assert [str(path.relative_to(ROOT)) for path in files(*OURS) if path.stem in OTHER_WORDS] == []


def test_no_public_class_name_stands_twice() -> None:
    count = Counter(
        node.name
        for path in files(*OURS)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, n in count.items() if n > 1] == []


def test_sql_stands_in_the_store_alone() -> None:
    found = [str(path.relative_to(ROOT)) for path in files(*OURS) if "sqlalchemy" in imported(path)]
    assert [path for path in found if not path.startswith("eval_client/store/")] == []


def test_no_imports_go_in_a_circle_not_even_those_in_functions() -> None:
    known = {module(path): path for path in files(*OURS)}
    graph = networkx.DiGraph((name, each) for name, path in known.items() for each in imported(path) if each in known)
    circles = {tuple(sorted(each)) for each in networkx.strongly_connected_components(graph) if len(each) > 1}
    assert circles == set()


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[2:] if parts[0] == "packages" else parts).removesuffix(".__init__")


def imported(path: Path) -> set[str]:
    """The modules that a file imports, and the names in them; not what types alone need."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    typing = {id(node) for check in checks for node in ast.walk(check)}
    nodes = [node for node in ast.walk(tree) if id(node) not in typing]
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {str(node.module) for node in froms} | {f"{n.module}.{a.name}" for n in froms for a in n.names}


OLD_NAMES = re.compile(
    "[Bb]argain|[Tt]eam|[Cc]rew|[Ll]ookout|[Ss]cene|[Oo]wed|[Cc]aps|Standing|Heard|Ended|standstill|Waits|Troubles|"
    "assured|patiently|Broken|listening|web_pages|PageGuard|suspicion|yaml_file|hosting|reporting|Seat|HeartbeatTaken|"
    "Turned|Alive|suited_parameters|TaskStanding|PairStanding|chronicle|Helper|Desk|Bench|census|Asked|Nothing|Past|"
    "comparable"
)
"""Names that things had before the house was moved, but for those that other things rightly bear."""


def test_nothing_is_named_as_before_the_move() -> None:
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in files(*OURS)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and OLD_NAMES.fullmatch(node.name)
    ]
    assert named + [str(path.relative_to(ROOT)) for path in files(*OURS) if OLD_NAMES.fullmatch(path.stem)] == []


def test_pages_use_the_words_of_the_glossary_not_older_ones() -> None:
    words = re.compile(r"\b(bargain|crew|lookout|standstill|census|owed trials?|onlooker|amiss)\b", re.IGNORECASE)
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = [f"{page.name}: {word}" for page in pages for word in words.findall(page.read_text(encoding="utf-8"))]
    assert found == []

"""What the documentation quotes and names is what the repository holds."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from eval_client.cli.main import proctor
from proctor.conformance.check import check
from proctor.environment import Environment
from proctor.session.play import PolicyAgent, play_to_finish
from tests.support import ROOT
from tools.docs.links import all_pages, broken_links
from tools.docs.pages import FOLDER as REFERENCE
from tools.docs.pages import pages

GUIDE = (ROOT / "docs" / "tutorial" / "your-own-environment.md").read_text(encoding="utf-8")
FOLDERS = (
    *("proctor", "environments", "task_server", "agent_server", "eval_client", "packages"),
    *("tests", "benchmarks", "scripts", "docker", "examples"),
)
OURS = f"(?:{'|'.join(FOLDERS)})"

each_page = pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))


@pytest.mark.parametrize(("kind", "file"), [("toml", "pyproject.toml"), ("python", "guessing.py")])
def test_the_guide_quotes_the_example_package(kind: str, file: str) -> None:
    quotes = re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
    assert (ROOT / "examples" / "third_party" / file).read_text(encoding="utf-8") in quotes


def test_the_example_environment_is_short() -> None:
    assert len((ROOT / "examples" / "third_party" / "guessing.py").read_text(encoding="utf-8").splitlines()) <= 40


async def test_the_guides_further_methods_leave_no_promise_out() -> None:
    _agent, example, *_, further = re.findall(r"^```python\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
    written: dict[str, type[Environment]] = {}
    exec(f"{example}\nfrom proctor import Summary\n{further}", written)
    environment = written["MeasuredGuessing"]()
    assert [f"{result.name}: {result.detail}" async for result in check(environment) if result.state != "ok"] == []
    reference = environment.reference("game-0")
    assert reference is not None
    solved = await play_to_finish(environment, "game-0", PolicyAgent(reference))
    assert environment.summarize([solved]).metrics == {"found": 1.0, "out_of_guesses": 0.0}


def without_code(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def test_every_code_in_the_table_of_agents_is_one_of_their_server() -> None:
    page = (ROOT / "docs" / "how-to" / "agents.md").read_text(encoding="utf-8")
    codes = re.findall(r"`(\w+_(?:found|exceeded|key|error|unavailable|large))`", page)
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "agent_server").rglob("*.py"))
    assert len(codes) > 5
    assert [code for code in codes if f'code="{code}"' not in sources] == []


@each_page
def test_no_line_is_longer_than_120_characters(page: Path) -> None:
    """But for code and rows of tables, which can't be wrapped."""
    lines = without_code(page).splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


@each_page
def test_every_file_and_folder_of_ours_that_is_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    files = re.findall(rf"`({OURS}/[\w./-]*(?:/|\w\.(?:py|sh|md|ya?ml|json|txt)))`", text)
    modules = re.findall(rf"python -m ({OURS}(?:\.\w+)+)", text)
    paths = [ROOT / file for file in files] + [ROOT / f"{module.replace('.', '/')}" for module in modules]
    assert [path for path in paths if not (path.exists() or path.with_suffix(".py").exists())] == []


def test_the_index_and_the_site_lead_to_every_page_in_one_order() -> None:
    index = ROOT / "docs" / "index.md"
    listed = re.findall(r"\]\(([^)]*)\)", index.read_text(encoding="utf-8"))
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in all_pages() if page.is_relative_to(docs)} - {"index.md"}
    assert sorted(pages) == sorted(listed)
    led_to = re.findall(r'"([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8"))
    navigation = [page for page in led_to if page in pages | {"index.md"}]
    assert navigation == ["index.md", *listed[1:], "glossary.md"]


def test_the_index_calls_pages_by_their_titles() -> None:
    index = ROOT / "docs" / "index.md"
    rows = re.findall(r"^\| \[(.*)\]\((.*)\) \|", index.read_text(encoding="utf-8"), re.MULTILINE)
    titles = {page: re.search("^# (.*)$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.M) for _, page in rows}
    assert [(name, page) for name, page in rows if (title := titles[page]) is None or title[1] != name] == []


def test_every_page_of_ours_that_code_names_exists() -> None:
    kinds = ("py", "yaml", "yml", "json", "sh", "toml")
    sources = [path for folder in FOLDERS for kind in kinds for path in (ROOT / folder).rglob(f"*.{kind}")]
    named = {
        (str(path.relative_to(ROOT)), page)
        for path in [*sources, ROOT / "pyproject.toml", ROOT / "Makefile"]
        for page in re.findall(r"(?<![\w/.-])docs/(?:[\w-]+/)+[\w-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert sorted(f"{path}: {page}" for path, page in named if not (ROOT / page).exists()) == []


def test_the_references_are_what_the_code_says() -> None:
    old = [name for name, text in pages().items() if (REFERENCE / name).read_text(encoding="utf-8") != text]
    assert old == [], "out of date; run `python -m tools.docs`"


def test_every_field_of_a_plan_has_a_type_and_nearly_all_a_meaning() -> None:
    lines = [" ".join(line.split()) for line in re.split(r"\n- |\n\n", pages()["plan-fields.md"])]
    told = [line for line in lines if re.match(r"`\w+` \(\S.*?\): \S", line)]
    plain = [each for line in lines if line not in told for each in re.findall(r"`(\w+)` \((.+?)\)(?=, `|$)", line)]
    assert len(told) + len(plain) > 60
    assert {name for name, kind in plain if "](#" not in kind} <= {"name", "agents", "tasks"}


def test_each_problem_stands_once_in_the_doctor_and_on_its_page_and_is_provoked_by_a_test() -> None:
    page = (ROOT / "docs" / "reference" / "doctor.md").read_text(encoding="utf-8").split("## Checks")[1]
    checks, problems = (set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`:?", part)) for part in page.split("## Problems"))
    source = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "eval_client" / "cli" / "doctor").glob("*.py")
    )
    kinds = Counter(re.findall(r'\b(?:warn|fail)\)?\(\s*"([a-z-]+)"', source))
    assert [kind for kind, n in kinds.items() if n > 1] == []
    assert set(kinds) == problems
    assert set(re.findall(r'\b(?:ok|skip)\(\s*"([a-z-]+)"', source)) == checks
    names = ("unit/eval_client/cli/test_doctor.py", "e2e/test_doctor.py", "integration/test_store.py")
    tests = "".join((ROOT / "tests" / name).read_text(encoding="utf-8") for name in names)
    assert [kind for kind in (*checks, *problems) if f'"{kind}"' not in tests] == []


def test_the_glossary_names_each_term_once_in_order_and_in_one_to_three_sentences() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^- \*\*(.+?)\*\*: (.*?)(?=^- |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    terms = [term.casefold() for term, _ in entries]
    assert 60 < len(terms) == len(set(terms)) == len(re.findall(r"^- ", text, flags=re.MULTILINE))
    assert sorted(terms) == terms
    sentences = {term: len(re.findall(r"\.(?:\s|$)", meaning)) for term, meaning in entries}
    assert {term: count for term, count in sentences.items() if not 1 <= count <= 3} == {}
    named = {word.casefold() for word in re.findall(r"(?<!\*)\*([A-Za-z][^*\n]*)\*(?!\*)", text)}
    assert named
    assert sorted(named - set(terms)) == []


def shown(page: Path) -> Iterator[str]:
    """The commands of a page's code: in blocks one a line or several with `;`, in text between backticks."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```(?:sh|console|bash)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        lines = re.sub(r"\\\n\s*", "", block).splitlines()
        yield from (part for line in lines for part in re.split(r"; |\s# | && | \| | > ", line.removeprefix("$ ")))
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (re.sub(r"\s+", " ", code) for code in re.findall(r"`(proctor [^`]*)`", prose))


def refusal(command: str) -> str | None:
    """Why `proctor` does not take a command, or None; a page may leave out values of options, and what `...` is."""
    words = shlex.split(command.partition("...")[0].rstrip())[1:]
    context = click.Context(proctor)
    found: click.Command | None = proctor
    try:
        while words and isinstance(found, click.Group):
            if words[0] in ("--help", "--version"):
                return None
            found, words = found.get_command(context, words[0]), words[1:]
        if found is None:
            return "no such command"
        found.make_parser(context).parse_args(words)
    except click.BadOptionUsage:  # without its value
        return None
    except click.UsageError as error:
        return error.format_message()
    return None


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_one_that_proctor_takes(page: Path) -> None:
    commands = [command for part in shown(page) if re.match(r"proctor [a-z-][^│]*$", command := part.strip())]
    refused = {command: why for command in commands if (why := refusal(command)) is not None}
    assert refused == {}


@pytest.mark.parametrize("command", ["proctor rum plan.yaml", "proctor run --fast", "proctor plan draw"])
def test_a_command_of_no_kind_is_refused(command: str) -> None:
    assert refusal(command) is not None

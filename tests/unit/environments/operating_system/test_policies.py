"""The built-in agents, and that the shipped data suit them."""

import subprocess
from pathlib import Path

import pytest

from environments.operating_system import policies
from environments.operating_system.dataset import Match, Record, Script
from environments.operating_system.observation import body
from environments.operating_system.prompt import EXAMPLE, opening
from environments.operating_system.reply import Bash, Commit, Invalid, parse
from environments.operating_system.scoring import variables
from proctor.sandbox.base import ENVIRONMENT
from proctor.types import Message


def after(output: str, description: str = "Count /srv/a.b/c, please.") -> tuple[Message, ...]:
    """A transcript in which one command printed the output."""
    ran = Message(role="assistant", content="Act: bash\n```bash\ntrue\n```")
    return (*opening(description), ran, Message(role="user", content=body(output)))


ASKED = Record(id="x", description="?", checks=(None,), example=Script(code="ls\nwc"))
DONE = Record(id="x", description="?", checks=(Script(code="exit 0"),), example=Script(language="python", code="'a'"))


def test_the_worked_example_follows_the_grammar() -> None:
    actions = [parse(message.content) for message in EXAMPLE if message.role == "assistant"]
    assert actions == [Bash("ls /etc"), Bash("ls -1 /etc | wc -l"), Commit("220")]


def test_gold_gives_the_expected_text_at_once() -> None:
    record = Record(id="x", description="?", match=Match(answer="log"))
    assert parse(policies.gold(record)("main", opening("?")).content) == Commit("log")


def test_gold_runs_the_example_and_answers_with_its_output() -> None:
    assert parse(policies.gold(ASKED)("main", opening("?")).content) == Bash(policies.as_checked(Script(code="ls\nwc")))
    assert parse(policies.gold(ASKED)("main", after(" 5 ")).content) == Commit("5")


def test_gold_finishes_where_no_answer_is_asked() -> None:
    action = parse(policies.gold(DONE)("main", opening("?")).content)
    assert isinstance(action, Bash)
    assert action.code.startswith("(cd / && exec /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:")
    assert parse(policies.gold(DONE)("main", after("")).content) == Commit(None)


def test_gold_gives_the_example_the_environment_of_a_check() -> None:
    printed = subprocess.run(
        ["/bin/bash", "-c", policies.as_checked(Script(code="env"))], capture_output=True, text=True, check=True
    ).stdout
    given = dict(line.split("=", 1) for line in printed.splitlines())
    wanted = {**ENVIRONMENT, **variables(given["PYTHONPYCACHEPREFIX"])}
    assert {name: given.get(name) for name in wanted} == wanted
    assert not Path(given["PYTHONPYCACHEPREFIX"]).exists()


@pytest.mark.parametrize(
    ("check", "reads"),
    [
        (None, True),
        (Script(code='test "$1" = 5'), True),
        (Script(code="[ ${1} -eq 5 ]"), True),
        (Script(code="test $# = 1"), True),
        (Script(code="test $HOME = /root"), False),
        (Script(language="python", code="from sys import argv\nexit(argv[1] != '5')"), True),
        (Script(language="python", code="exit(0)"), False),
        (Script(language="c", code="int main(int argc, char **argv) { return argv[1][0] != '5'; }"), True),
    ],
)
def test_gold_answers_whenever_a_check_reads_an_argument(check: Script | None, reads: bool) -> None:
    assert policies.reads_arguments(check) is reads
    record = Record(id="x", description="?", checks=(Script(code="exit 0"), check), example=Script(code="echo 5"))
    assert parse(policies.gold(record)("main", after("5")).content) == Commit("5" if reads else None)


def test_naive_lists_the_path_it_reads_and_answers_with_a_number() -> None:
    assert parse(policies.naive("main", opening("Count /srv/a.b/c, please.")).content) == Bash("ls /srv/a.b/c | wc -l")
    assert parse(policies.naive("main", opening("Count it.")).content) == Bash("ls ~ | wc -l")
    assert parse(policies.naive("main", after("about 12 of 13")).content) == Commit("12")
    assert parse(policies.naive("main", after("")).content) == Commit(None)


def test_random_is_well_formed_and_a_function_of_sample_seed_and_turn() -> None:
    seen = set()
    for seed in range(50):
        action = policies.random("x", seed)("main", opening("?"))
        assert action == policies.random("x", seed)("main", opening("?"))
        assert not isinstance(parse(action.content), Invalid)
        seen.add(action.content)
    assert len(seen) > 5

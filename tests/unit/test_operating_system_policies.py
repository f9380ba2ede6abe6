"""The built-in agents, and that the shipped data suit them."""

from environments.operating_system import policies
from environments.operating_system.actions import Bash, Commit, Invalid, parse
from environments.operating_system.dataset import Match, Record, Script
from environments.operating_system.observation import body
from environments.operating_system.prompt import EXAMPLE, opening
from environments.types import Message


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
    assert parse(policies.gold(ASKED)("main", opening("?")).content) == Bash("ls\nwc")
    assert parse(policies.gold(ASKED)("main", after(" 5 ")).content) == Commit("5")


def test_gold_finishes_where_no_answer_is_asked() -> None:
    assert parse(policies.gold(DONE)("main", opening("?")).content) == Bash("/usr/bin/python3 -c ''\"'\"'a'\"'\"''")
    assert parse(policies.gold(DONE)("main", after("")).content) == Commit(None)


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

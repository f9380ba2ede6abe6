"""`proctor play`: a person, or a script, plays one session; no plan, no server."""

import json
import os
import subprocess
from pathlib import Path

from tests.e2e.commands.terminal import on_a_terminal
from tests.e2e.proctor import COMMAND, environment, proctor
from tests.pace import slowly
from tests.tools_environment import behind, write_distribution

SQLITE = ("-T", "engine=sqlite")
ANSWERED = 'Action: Answer\nFinal Answer: ["x"]\n'


def play(*arguments: str, answers: str, cwd: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    return proctor("play", *arguments, cwd=cwd, answers=answers, **extra)


def test_a_session_is_played_from_standard_input_and_scored(tmp_path: Path) -> None:
    played = play("db", "insert-00001", *SQLITE, answers=ANSWERED + "\n", cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    assert "sample insert-00001" in played.stdout
    assert "score 0.000  completed" in played.stdout
    assert '"statements": 0' in played.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_last_answer_needs_no_end_mark_and_the_finish_comes_as_json(tmp_path: Path) -> None:
    played = play("db", *SQLITE, "--json", answers=ANSWERED, cwd=tmp_path)
    assert played.returncode == 0
    assert json.loads(played.stdout)["reason"] == "completed"
    assert "turn 1" in played.stderr


def test_an_answer_with_empty_lines_has_an_end_mark_of_its_own(tmp_path: Path) -> None:
    statement = "I look.\n\nAction: Operation\n```sql\nSELECT 41 + 1;\n```\n"
    played = play("db", *SQLITE, "--end", ".", answers=f"{statement}.\n{ANSWERED}.\n", cwd=tmp_path)
    assert "turn 2" in played.stdout
    assert "42" in played.stdout
    assert '"statements": 1' in played.stdout


def test_answers_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text(ANSWERED)
    with (tmp_path / "answers").open() as file:
        ended = subprocess.run(
            [*COMMAND, "play", "db", *SQLITE],
            stdin=file,
            env=environment(),
            capture_output=True,
            timeout=slowly(60),
            check=False,
        )
    assert ended.returncode == 0, ended.stderr


def test_input_that_ends_before_the_session_gives_no_score(tmp_path: Path) -> None:
    played = play("db", *SQLITE, answers="", cwd=tmp_path)
    assert played.returncode == 1
    assert "no score: agent_error: the input ended" in played.stdout


def test_a_person_names_functions_and_their_arguments(tmp_path: Path) -> None:
    write_distribution(tmp_path)
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    door = behind("s0")
    answers = f'open\n\nopen_door {{"door": "{door}"}}\n\nopen_door {behind(door)}\n\nleave\n\nleave\n'
    played = play("doors", "s0", answers=answers, cwd=tmp_path, PYTHONPATH=path)
    assert "[functions]\nopen_door: Opens the door of this number, and says what is behind it." in played.stdout
    assert "    door (string): The number that was last told." in played.stdout
    assert "there are: open_door, leave" in played.stdout
    assert "score 0.500  completed" in played.stdout


def test_wrong_names_are_refused_with_the_right_ones(tmp_path: Path) -> None:
    for arguments, told in (
        (("dbx",), "unknown environment 'dbx'"),
        (("db", "nope", *SQLITE), "the first are: insert-00000"),
        (("db", "-T", "engin=sqlite"), "engin"),
        (("db", "-T", "engine"), "write it as field=value"),
    ):
        refused = proctor("play", *arguments, cwd=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert told in refused.stderr
    listed = proctor("play", "db", "--list", cwd=tmp_path)
    assert listed.stdout.splitlines()[0] == "insert-00000"


def test_ctrl_c_on_a_terminal_ends_cleanly(tmp_path: Path) -> None:
    with on_a_terminal("play", "db", *SQLITE, cwd=tmp_path) as (process, terminal):
        terminal.until("then an empty line")
        terminal.type(b"half an answer\n\x03")
        shown = terminal.until("the session has no score")
        assert process.wait(slowly(30)) == 130
    assert "Traceback" not in shown

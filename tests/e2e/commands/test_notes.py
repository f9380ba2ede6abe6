"""What people write of runs, and how the plans of two differ."""

from pathlib import Path

from tests.e2e.commands.test_screen import written
from tests.e2e.proctor import begin, completed, exits, proctor
from tests.pace import until

NOTED = "the <b>endpoint</b>\n was [link=x]restarted[/link] \x1b[31m"
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


def test_a_note_stands_in_the_report_also_of_a_run_under_way(tmp_path: Path) -> None:
    written(tmp_path, 8)
    process = begin("run", "plan.yaml", "--name=r", "--limit=1", "-q", cwd=tmp_path)
    until(lambda: "running" in proctor("status", "r", cwd=tmp_path).stdout)
    exits(0, "note", "r", NOTED, cwd=tmp_path)
    completed(process, 0)
    exits(0, "note", "r", "second", cwd=tmp_path)
    assert (
        "UTC: the <b>endpoint</b> was [link=x]restarted[/link] \\x1b[31m\n" in exits(0, "report", cwd=tmp_path).stdout
    )
    exits(0, "report", "--html", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert "UTC: the &lt;b&gt;endpoint" in page
    assert page.index("endpoint&lt;") < page.index("UTC: second") < page.index("<h2")
    assert "TEXT is empty" in exits(2, "note", "r", " ", cwd=tmp_path).stderr


def test_two_plans_are_told_apart_field_by_field(tmp_path: Path) -> None:
    text = "agents: [{name: a, builtin: naive}, {name: b, model: m}]\ntasks: [{name: db, environment: db}]\n"
    (tmp_path / "one.yaml").write_text(text)
    (tmp_path / "other.yaml").write_text(text.replace("model: m", "model: n, concurrency: 2").replace("db,", "d,"))
    (tmp_path / "secret.yaml").write_text(text.replace("model: m", f"model: {SECRET}"))
    exits(0, "run", "one.yaml", "--agent=a", "--limit=1", "--name=r", "-q", cwd=tmp_path)
    assert exits(0, "plan", "diff", "r", "r", cwd=tmp_path).stdout == ""
    assert 'agents.b.model: not set -> "m"\n' in exits(1, "plan", "diff", "r", "one.yaml", cwd=tmp_path).stdout
    told = exits(1, "plan", "diff", "one.yaml", "other.yaml", cwd=tmp_path).stdout.splitlines()
    assert told[0] == 'agents.b.model: "m" -> "n"'
    assert {"agents.b.concurrency: not set -> 2", 'tasks.d.environment: not set -> "db"'} < set(told)
    assert not [line for line in told if line.startswith("agents.a")]
    refused = exits(2, "plan", "diff", "one.yaml", "secret.yaml", cwd=tmp_path)
    assert SECRET not in refused.stdout + refused.stderr

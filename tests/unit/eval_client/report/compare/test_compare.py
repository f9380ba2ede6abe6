"""`proctor compare` from stored scores to its text, its JSON and its exit code."""

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from eval_client.cli.main import proctor
from eval_client.report.compare.sides import CompareError, Reference, parse_reference
from tests.unit.eval_client.report.compare.stored import Grades, stored_run, summarized

ONES, ZEROS = [1.0] * 40, [0.0] * 40


def half(seed: int, count: int = 100) -> list[float]:
    chance = random.Random(seed)
    return [float(chance.random() < 0.5) for _ in range(count)]


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(proctor, ["compare", *arguments, "-o", str(folder)])


def found(folder: Path, *arguments: str) -> Any:
    done = run(folder, *arguments, "--json")
    assert done.exit_code in (0, 1), done.output
    schema = json.loads(run(folder, "--schema").output)
    value = json.loads(done.output)
    jsonschema.Draft202012Validator(schema).validate(value)
    return value


def two(folder: Path, a: Grades, b: Grades, **others: Any) -> None:
    stored_run(folder, "first", {"good": {"t": a}, "bad": {"t": b}}, **others)


def test_a_note_on_several_tasks_is_said_once(tmp_path: Path) -> None:
    few = [1.0, 0.0, 1.0]
    stored_run(tmp_path, "first", {agent: {"t": few, "u": few} for agent in ("good", "bad")})
    told = run(tmp_path, "first:good", "first:bad").output
    assert "note: t, u: Few samples (3)" in told
    assert told.count("Few samples (3)") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("runs/first", Reference("runs/first", None, None, None)),
        (":gpt", Reference("latest", "gpt", None, None)),
        ("first:gpt", Reference("first", "gpt", None, None)),
        ("first:gpt@os", Reference("first", "gpt", "os", None)),
        ("first:gpt@os/a:b@c/d", Reference("first", "gpt", "os", "a:b@c/d")),
    ],
)
def test_references(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected


@pytest.mark.parametrize("text", ["first:", "first:gpt@", "first:gpt@os/", ":@os"])
def test_a_reference_with_an_empty_part_is_refused(text: str) -> None:
    with pytest.raises(CompareError, match="after"):
        parse_reference(text)


def test_the_figures_of_a_vector(tmp_path: Path) -> None:
    """31 samples passed by A alone, 17 by B alone, of 144."""
    a = [1.0] * 31 + [0.0] * 17 + [1.0] * 21 + [0.0] * 75
    b = [0.0] * 31 + [1.0] * 17 + [1.0] * 21 + [0.0] * 75
    two(tmp_path, a, b)
    value = found(tmp_path, "first:good", "first:bad")
    [row] = value["tasks"]
    assert (row["samples"], row["clusters"], row["test"]) == (144, 144, "mcnemar")
    assert (row["wins"], row["losses"], row["ties"], row["epochs"]) == (31, 17, 96, [1, 1])
    assert row["p"] == row["p_holm"] == pytest.approx(0.05946337525)
    assert row["interval"] == pytest.approx([0.0022484965, 0.1895323523])
    assert row["detectable"] == pytest.approx(0.138, abs=5e-4)
    assert (row["missing"], row["bounds"], row["holds"]) == (
        {"a": 0, "b": 0, "p": 1.0},
        pytest.approx([14 / 144] * 2),
        True,
    )
    text = run(tmp_path, ":good", ":bad").output
    expected = "t 144 0.361 0.264 +0.097 +0.002 .. +0.190 0.0595 0.0595 0.138 31 / 96 / 17 none"
    assert expected in " ".join(text.split())


def test_all_pairs_of_a_run_have_letters_and_one_correction(tmp_path: Path) -> None:
    grades = {"x": {"t": ONES, "u": ONES}, "y": {"t": ONES, "u": ZEROS}, "z": {"t": ZEROS, "u": ZEROS}}
    stored_run(tmp_path, "first", grades)
    value = found(tmp_path, "first")
    assert [(each["a"]["agent"], each["b"]["agent"]) for each in value["comparisons"]] == [
        ("x", "y"),
        ("x", "z"),
        ("y", "z"),
    ]
    assert {each["tests"] for each in value["comparisons"]} == {6}
    assert value["letters"] == {"t": {"x": "a", "y": "a", "z": "b"}, "u": {"x": "a", "y": "b", "z": "b"}}
    assert "x a a y a b z b b" in " ".join(run(tmp_path, "first").output.split())
    against = found(tmp_path, "first", "--against", "y", "--task", "u")
    assert [each["a"]["agent"] for each in against["comparisons"]] == ["x", "z"]
    assert [row["task"] for each in against["comparisons"] for row in each["tasks"]] == ["u", "u"]
    assert against["letters"] == {}


def test_faults_never_enter_a_mean_and_what_is_missing_is_bounded(tmp_path: Path) -> None:
    """A misses 20 of 100, its worst first: the bounds widen, and the sign may change."""
    worst_missing = [None] * 20 + [1.0] * 50 + [0.0] * 30
    two(tmp_path, worst_missing, [0.0] * 20 + [1.0] * 40 + [0.0] * 40)
    [row] = found(tmp_path, ":good", ":bad")["tasks"]
    assert (row["samples"], row["planned"]) == (80, 100)
    assert (row["mean"], row["difference"]) == ([50 / 80, 0.5], pytest.approx(0.125))
    assert row["missing"] == {"a": 20, "b": 0, "p": pytest.approx(2**-19)}
    assert row["mean_bounds"][0] == pytest.approx([0.5, 0.7])
    assert row["bounds"] == pytest.approx([0.1, 0.3])
    assert row["holds"], "even with 0 for each missing score"
    assert any("miss different samples" in line for line in row["warnings"])


def test_a_sign_that_missing_scores_could_change_does_not_hold(tmp_path: Path) -> None:
    two(tmp_path, [None] * 20 + [1.0] * 50 + [0.0] * 30, [1.0] * 20 + [1.0] * 40 + [0.0] * 40)
    [row] = found(tmp_path, ":good", ":bad")["tasks"]
    assert row["difference"] > 0 > row["bounds"][0]
    assert not row["holds"]
    assert any("the sign could change" in line for line in row["warnings"])
    assert "miss different samples" in run(tmp_path, ":good", ":bad").output


def test_epochs_give_passes_and_components(tmp_path: Path) -> None:
    two(tmp_path, [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]] * 4, [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]] * 4)
    [row] = found(tmp_path, ":good", ":bad", "--bootstrap", "1000")["tasks"]
    assert row["bootstrap"][0] <= row["difference"] <= row["bootstrap"][1]
    assert (row["epochs"], row["test"]) == ([2, 2], "sign_flip_exact")
    assert [each["k"] for each in row["passes"]] == [1, 2]
    assert row["passes"][1]["pass_at"] == pytest.approx([1.0, 1 / 3])
    assert row["passes"][1]["pass_hat"] == pytest.approx([1 / 3, 0.0])
    shown = run(tmp_path, ":good", ":bad", "--bootstrap", "1000").output
    assert [line.split()[0] for line in shown.splitlines() if line.startswith(("pass", "bootstrap"))] == [
        *("bootstrap", "pass@1", "pass@2", "pass^2"),
    ]
    lenient = found(tmp_path, ":good", ":bad", "--pass-at", "0")["tasks"][0]["passes"]
    assert lenient[0]["pass_hat"] == [1.0, 1.0]


def test_swapping_sides_changes_signs_alone(tmp_path: Path) -> None:
    two(tmp_path, half(1), half(2))
    one, other = (found(tmp_path, *sides)["tasks"][0] for sides in ((":good", ":bad"), (":bad", ":good")))
    assert one["difference"] == -other["difference"]
    assert (one["p"], one["detectable"], one["wins"]) == (other["p"], other["detectable"], other["losses"])
    assert one["interval"] == pytest.approx([-end for end in reversed(other["interval"])])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "limits": ({"plan": {"limits": {"trial": {"turns": 5}}}}, "limits.trial.turns: None -> 5"),
    "seed": ({"plan": {"seed": 7}}, "seed: 0 -> 7"),
    "task": ({"digests": {"t": "other"}}, "tasks.t: data or prompts (digest digest of t -> other)"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_unlike_runs_are_refused_by_field_and_waved_through_by_their_own_kind_alone(tmp_path: Path, kind: str) -> None:
    others, field = REFUSED[kind]
    stored_run(tmp_path, "one", {"good": {"t": ONES}})
    stored_run(tmp_path, "two", {"good": {"t": ZEROS}}, **others)
    refused = run(tmp_path, "one", "two")
    assert refused.exit_code == 2
    assert f"  {field}" in refused.output
    assert f"--across {kind}" in refused.output
    for other in {"limits", "seed", "version", "task"} - {kind}:
        assert run(tmp_path, "one", "two", "--across", other).exit_code == 2
    waved = run(tmp_path, "one", "two", "--across", kind)
    assert waved.exit_code == 0
    assert waved.output.startswith(f"NOT ALIKE: {field}")
    assert any(line.split()[:2] == ["≠", "t"] for line in waved.output.splitlines())
    value = found(tmp_path, "one", "two", "--across", kind)
    assert (value["alike"], value["across"]) == ([field], [kind])


def test_another_version_is_refused_where_its_minor_number_differs(tmp_path: Path) -> None:
    stored_run(tmp_path, "one", {"good": {"t": ONES}})
    store = stored_run(tmp_path, "two", {"good": {"t": ZEROS}})
    manifest = store.manifest()
    major, minor, _ = manifest.version.split(".")
    store.update_manifest(manifest.model_copy(update={"version": f"{major}.{minor}.99"}))
    assert run(tmp_path, "one", "two").exit_code == 0
    store.update_manifest(manifest.model_copy(update={"version": f"{major}.{int(minor) + 1}.0"}))
    assert "version of Proctor" in run(tmp_path, "one", "two").output
    assert run(tmp_path, "one", "two", "--across", "version").exit_code == 0


def test_another_environment_is_always_refused(tmp_path: Path) -> None:
    stored_run(tmp_path, "one", {"good": {"t": ONES}})
    stored_run(tmp_path, "two", {"good": {"t": ZEROS}}, environments={"t": "db"})
    every = [part for kind in ("limits", "seed", "version", "task") for part in ("--across", kind)]
    refused = run(tmp_path, "one", "two", *every)
    assert (refused.exit_code, "tasks.t.environment: 'ltp' -> 'db'" in refused.output) == (2, True)


def test_parameters_that_differ_are_named(tmp_path: Path) -> None:
    def tasks(rules: str) -> dict[str, object]:
        return {"tasks": [{"name": "t", "environment": "ltp", "parameters": {"prompts": rules}}]}

    stored_run(tmp_path, "one", {"good": {"t": ONES}}, plan=tasks("own"), digests={"t": "1"})
    stored_run(tmp_path, "two", {"good": {"t": ONES}}, plan=tasks("published"), digests={"t": "2"})
    assert "tasks.t.parameters.prompts: 'own' -> 'published'" in run(tmp_path, "one", "two").output


def test_one_agents_two_protocols_are_compared_across_tasks(tmp_path: Path) -> None:
    stored_run(tmp_path, "one", {"gpt": {"os-text": ONES, "os-tools": ZEROS}}, digests={"os-tools": "other"})
    sides = ("latest:gpt@os-text", ":gpt@os-tools")
    assert run(tmp_path, *sides).exit_code == 2
    value = found(tmp_path, *sides, "--across", "task")
    assert [(row["task"], row["task_b"], row["difference"]) for row in value["tasks"]] == [("os-text", "os-tools", 1.0)]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("first",), "run first has one agent, good"),
        (("first:good",), "needs a second agent"),
        (("first", "nowhere"), "no run 'nowhere'"),
        (("first:nobody", "first"), "run first has no agent 'nobody'; its agents are: good"),
        (("first:good@u", "first"), "good (first) plays no task 'u'; it plays: t"),
        (("first:good@t/s1", "first"), "leave the sample out"),
        (("first", "second", "--task", "u"), "--task u: not played by both; both play: t"),
        (("first", "second"), "no scored sample in common"),
        (("first", "many"), "run many: name one of its agents, as many:a0"),
        (("many",), "7 agents, too many for all pairs (at most 6)"),
        (("many", "--against", "b"), "--against b: run many has no such agent"),
        (("many", "--fail-if-worse", "0"), "a gate needs A"),
        (("first", "second", "many"), "name two agents"),
    ],
)
def test_mistakes(tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    stored_run(tmp_path, "first", {"good": {"t": ONES}})
    stored_run(tmp_path, "second", {"good": {"t": [None, None]}})
    stored_run(tmp_path, "many", {f"a{number}": {"t": half(number, 12)} for number in range(7)})
    done = run(tmp_path, *arguments)
    assert (done.exit_code, problem in done.output.replace("\n", " ")) == (2, True), done.output


def test_seven_agents_against_one(tmp_path: Path) -> None:
    stored_run(tmp_path, "many", {f"a{number}": {"t": half(number, 12)} for number in range(7)})
    assert len(found(tmp_path, "many", "--against", "a3")["comparisons"]) == 6


def test_runs_cut_by_a_limit_are_compared_on_what_they_share(tmp_path: Path) -> None:
    stored_run(tmp_path, "one", {"good": {"t": ONES[:30]}})
    stored_run(tmp_path, "two", {"good": {"t": ZEROS}})
    [row] = found(tmp_path, "one", "two")["tasks"]
    assert (row["samples"], row["planned"], row["planned_on_one_side"]) == (30, 30, 10)
    assert any("10 samples are planned on one side only" in line for line in row["warnings"])


GATES: dict[str, tuple[Grades, Grades, int, int]] = {
    "worse and sure": (ONES, ZEROS, 1, 1),
    "worse and unsure": ([1.0] * 3 + [0.0] * 17, [0.0] * 20, 0, 1),
    "equal and sure": (half(3, 400), half(3, 400), 0, 0),
    "too much missing": ([1.0] * 400, [1.0] * 360 + [None] * 40, 1, 1),
}


@pytest.mark.parametrize("case", GATES)
def test_gates(tmp_path: Path, case: str) -> None:
    a, b, if_worse, unless_as_good = GATES[case]
    two(tmp_path, a, b)
    worse = run(tmp_path, ":good", ":bad", "--fail-if-worse", "0.05")
    good = run(tmp_path, ":good", ":bad", "--fail-unless-as-good", "0.05")
    assert (worse.exit_code, good.exit_code) == (if_worse, unless_as_good)
    for done, code in ((worse, if_worse), (good, unless_as_good)):
        assert ("FAILED" in done.output, "planned samples are matched" in done.output) == (
            code == 1,
            case == "too much missing",
        )
    value = found(tmp_path, ":good", ":bad", "--fail-unless-as-good", "0.05")
    assert len(value["gates"]) == unless_as_good


def test_a_better_candidate_passes_both_gates(tmp_path: Path) -> None:
    two(tmp_path, ZEROS, ONES)
    assert run(tmp_path, ":good", ":bad", "--fail-if-worse", "0", "--fail-unless-as-good", "0").exit_code == 0


def test_few_samples_are_said_to_be_few(tmp_path: Path) -> None:
    two(tmp_path, ONES[:4], ZEROS[:4])
    [row] = found(tmp_path, ":good", ":bad")["tasks"]
    assert row["p"] == 0.125
    assert any("4 samples can't show anything at this level: no p is below 0.125" in line for line in row["warnings"])
    two_more = found(tmp_path, ":good", ":bad", "--alpha", "0.2")["tasks"][0]
    assert not any("can't show" in line for line in two_more["warnings"])


def test_differences_that_do_not_vary_say_nothing_about_what_could_be_found(tmp_path: Path) -> None:
    two(tmp_path, ONES, ONES)
    [row] = found(tmp_path, ":good", ":bad")["tasks"]
    assert (row["difference"], row["detectable"]) == (0, None)


def test_a_metric_that_is_no_mean_gets_a_paired_jackknife_where_its_environment_is_installed(tmp_path: Path) -> None:
    store = stored_run(tmp_path, "one", {"x": {"t": ONES}, "y": {"t": [1.0, 0.0] * 20}}, environments={"t": "db"})
    summarized(store, "x", 40, "overall_cat_accuracy", 0.9)
    summarized(store, "y", 40, "overall_cat_accuracy", 0.4)
    value = found(tmp_path, ":x", ":y")["tasks"][0]
    primary = value["primary"]
    assert (primary["name"], primary["is_mean_score"]) == ("overall_cat_accuracy", False)
    assert primary["difference"] == pytest.approx(primary["a"] - primary["b"])
    assert primary["standard_error"] > 0
    shown = next(line.split() for line in run(tmp_path, ":x", ":y").output.splitlines() if line.startswith("overall"))
    assert shown[2:4] == [f"{primary[side]:.3f}" for side in ("a", "b")]


def test_a_metric_whose_environment_is_not_here_has_no_difference(tmp_path: Path) -> None:
    store = stored_run(tmp_path, "one", {"x": {"t": ONES}, "y": {"t": ZEROS}})
    manifest = store.manifest()
    plan = json.loads(json.dumps(manifest.plan).replace('"ltp"', '"gone"'))
    store.update_manifest(manifest.model_copy(update={"plan": plan}))
    summarized(store, "x", 40, "odd", 0.9)
    summarized(store, "y", 40, "odd", 0.4)
    primary = found(tmp_path, ":x", ":y")["tasks"][0]["primary"]
    assert (primary["a"], primary["b"], primary["difference"]) == (0.9, 0.4, None)


def test_a_metric_that_is_the_mean_score_has_the_figures_of_the_test(tmp_path: Path) -> None:
    store = stored_run(tmp_path, "one", {"x": {"t": ONES}, "y": {"t": ZEROS}})
    summarized(store, "x", 40, "rate", 1.0)
    summarized(store, "y", 39, "rate", 0.0)
    assert found(tmp_path, ":x", ":y")["tasks"][0]["primary"] is None, "y's summary is of other trials"
    summarized(store, "y", 40, "rate", 0.0)
    primary = found(tmp_path, ":x", ":y")["tasks"][0]["primary"]
    assert (primary["is_mean_score"], primary["difference"]) == (True, 1.0)


def test_samples_of_one_cluster_are_one_unit(tmp_path: Path) -> None:
    """As in a store of the next schema: the column is there, and NULL where a trial names no cluster."""
    store = stored_run(tmp_path, "one", {"x": {"t": ONES}, "y": {"t": ZEROS}})
    with store.engine.begin() as connection:
        if "cluster" not in {row[1] for row in connection.exec_driver_sql("PRAGMA table_info(proctor_trial)")}:
            connection.exec_driver_sql("ALTER TABLE proctor_trial ADD COLUMN cluster VARCHAR(255)")
        connection.exec_driver_sql("UPDATE proctor_trial SET cluster = 'room' || (id % 8)")
        connection.exec_driver_sql("UPDATE proctor_trial SET cluster = NULL WHERE sample = 's0'")
    [row] = found(tmp_path, ":x", ":y")["tasks"]
    assert (row["samples"], row["clusters"], row["test"]) == (40, 9, "sign_flip_exact")
    assert any("Few clusters (9)" in line for line in row["warnings"])


def test_two_samples_alike_are_no_proof_that_the_candidate_is_as_good(tmp_path: Path) -> None:
    two(tmp_path, [0.5, 0.5], [0.5, 0.5])
    done = run(tmp_path, ":good", ":bad", "--fail-unless-as-good", "0.01")
    assert done.exit_code == 1
    assert "B may be worse by up to 0.658" in done.output
    assert "+0.000 .. +0.000" not in done.output


@pytest.mark.parametrize("clusters", [2, 5])
def test_no_difference_is_promised_where_so_few_clusters_can_show_none(tmp_path: Path, clusters: int) -> None:
    store = stored_run(
        tmp_path, "one", {"x": {"t": [0.9, 0.8, 0.95, 1.0, 0.9] * 4}, "y": {"t": [0.1, 0.2, 0.0, 0.3, 0.2] * 4}}
    )
    with store.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE proctor_trial SET cluster = 'room' || (id % 20 % {clusters})")
    [row] = found(tmp_path, ":x", ":y")["tasks"]
    assert (row["clusters"], row["detectable"]) == (clusters, None)
    assert any("can't show anything at this level" in line for line in row["warnings"])
    low, high = row["interval"]
    assert -1 <= low < row["difference"] < high <= 1


def test_skewed_differences_on_which_the_two_tests_disagree_are_told(tmp_path: Path) -> None:
    two(tmp_path, [0.6] * 18 + [0.2] * 2, [0.5] * 20)
    [row] = found(tmp_path, ":good", ":bad")["tasks"]
    assert row["t_p"] < 0.05 < row["p"]
    assert any("disagree at this level" in line for line in row["warnings"])
    (tmp_path / "alike").mkdir()
    two(tmp_path / "alike", [0.6] * 20, [0.5] * 20)
    [row] = found(tmp_path / "alike", ":good", ":bad")["tasks"]
    assert not any("disagree" in line for line in row["warnings"])

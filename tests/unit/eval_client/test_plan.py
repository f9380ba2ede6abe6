"""Plans: what is refused and how it is told, what shapes a trial, what a run is made of."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from pydantic import JsonValue

import environments.database
from eval_client.cli.plans.plan_file import made_plan, plan_text
from eval_client.plan.entries import Endpoint
from eval_client.plan.load import load_plan, with_overrides
from eval_client.plan.plan import Plan, differences, trial_seed
from eval_client.python.arguments import new_request, override_texts
from eval_client.run.preflight import trials_at_once
from eval_client.store.planned_trials import PlannedTrials
from proctor import PlanError
from proctor.config.yaml import FileError
from tests.toy_environment import installed

SHIPPED = Path(str(environments.database.__file__)).parent / "samples" / "select.jsonl"
SMALL = """\
name: small
agents:
  - name: gpt
    endpoint: shared
    model: gpt-9
  - name: reference
    builtin: reference
endpoints:
  - name: shared
    base_url: http://127.0.0.1:9/v1
    concurrency: 4
tasks:
  - name: db-own
    environment: db
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "plan.yaml"
    path.write_text(text)
    return path


def test_a_small_plan_loads_with_every_agent_on_every_task(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path, SMALL))
    assert plan.pairs() == (("gpt", "db-own"), ("reference", "db-own"))
    assert plan.endpoint_of(plan.agent("gpt")).concurrency == 4


@pytest.mark.parametrize("name", ["temperature", "top_p", "max_tokens", "max_completion_tokens"])
def test_a_text_in_the_place_of_a_number_is_refused_in_a_file_and_read_from_a_store(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, SMALL.replace("    model: gpt-9\n", f"    model: gpt-9\n    sampling: {{{name}: '0'}}\n"))
    with pytest.raises(FileError, match=rf"agents.gpt.sampling.{name}: must be a number \(got the text '0'\)"):
        load_plan(path)
    stored = Plan.model_validate(yaml.safe_load(path.read_text()))
    assert with_overrides(stored, []).agent("gpt").sampling[name] == "0"


def test_a_task_without_environment_needs_a_controller(tmp_path: Path) -> None:
    text = SMALL.replace("    environment: db\n", "").replace("  - name: reference\n    builtin: reference\n", "")
    with pytest.raises(FileError, match="set `controller` to a URL"):
        load_plan(written(tmp_path, text))
    remote = load_plan(written(tmp_path, text + "controller: http://127.0.0.1:5000\n"))
    assert remote.definitions() == ()


LACKING = """\
agents: [{name: r, builtin: reference}, {name: weak, builtin: naive}, {name: dice, builtin: random}, {name: gpt}]
tasks: [{name: toy, environment: toy-solved}]
"""


@pytest.mark.parametrize("where", ["", "controller: http://127.0.0.1:9\n"])
def test_a_built_in_agent_whose_policy_no_environment_has_is_refused(tmp_path: Path, where: str) -> None:
    (tmp_path / "installed").mkdir()
    with installed(tmp_path / "installed"), pytest.raises(FileError) as refused:
        load_plan(written(tmp_path, LACKING + where))
    weak, dice = str(refused.value).splitlines()
    assert weak == (
        f"{tmp_path / 'plan.yaml'}:1: agents.weak.builtin: the environment toy-solved of task 'toy' has no naive "
        "policy; list the pairs to play without this one under `assignments`, or give the environment a method `naive`"
    )
    assert "agents.dice.builtin" in dice


@pytest.mark.parametrize(
    ("task", "further"),
    [
        ("parameters: {engine: other}", ["plan.yaml:3: tasks.t.parameters.engine: must be mariadb or sqlite"]),
        ("data: none.jsonl", ["plan.yaml:3: tasks.t.data: there is no file"]),
        ("colour: red", ["plan.yaml:3: tasks.t.colour: unknown field"]),
        ("parameters: {}", []),
    ],
)
def test_mistakes_of_different_kinds_are_told_at_once(tmp_path: Path, task: str, further: list[str]) -> None:
    agent = "agents: [{name: a, builtin: naive}]"
    text = f"epochs: many\n{agent}\ntasks: [{{name: t, environment: db, {task}}}]\n"
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(FileError) as refused:
        load_plan(tmp_path / "plan.yaml")
    first, *others = str(refused.value).replace(f"{tmp_path}/", "").splitlines()
    assert first.startswith("plan.yaml:1: epochs: must be a whole number")
    assert [other[: len(expected)] for other, expected in zip(others, further, strict=True)] == further


def test_built_in_agents_that_play_other_tasks_are_not_refused(tmp_path: Path) -> None:
    text = LACKING.replace("tasks: [", "tasks: [{name: letters, environment: toy-letters}, ")
    text += "assignments: [{agents: [r, gpt], tasks: [toy]}, {agents: [weak, dice], tasks: [letters]}]\n"
    (tmp_path / "installed").mkdir()
    with installed(tmp_path / "installed"):
        assert len(load_plan(written(tmp_path, text)).pairs()) == 4


@pytest.mark.parametrize(
    ("dialect", "sampling", "field"),
    [
        (
            "responses",
            "{temperature: 0, stop: [x]}",
            "agents.gpt.sampling.stop: dialect 'responses' has none; ",
        ),
        ("messages", "{reasoning_effort: low}", "agents.gpt.sampling.reasoning_effort: dialect 'messages' has none; "),
    ],
)
def test_what_the_dialect_of_an_agents_endpoint_lacks_is_refused(
    tmp_path: Path, dialect: str, sampling: str, field: str
) -> None:
    text = SMALL.replace("concurrency: 4", f"dialect: {dialect}").replace("gpt-9", f"gpt-9\n    sampling: {sampling}")
    with pytest.raises(FileError) as refused:
        load_plan(written(tmp_path, text))
    assert str(refused.value).startswith(f"{tmp_path / 'plan.yaml'}:6: {field}")


def test_a_dialect_is_a_part_of_a_runs_identity_and_its_cache_is_not(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path, SMALL))
    other = load_plan(tmp_path / "plan.yaml", ["endpoints.shared.dialect=messages"])
    cached = load_plan(
        tmp_path / "plan.yaml", ["endpoints.shared.dialect=messages", "endpoints.shared.cache_prompt=never"]
    )
    assert differences(plan.identity(), other.identity()) == ["endpoints.shared.dialect: None -> 'messages'"]
    assert other.identity() == cached.identity()
    assert other.endpoints[0].api_key_env == "ANTHROPIC_API_KEY"


def test_overrides_reach_items_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL)
    plan = load_plan(path, ["agents.gpt.concurrency=3", "limits.run.tokens=25", "endpoints.shared.concurrency=9"])
    assert (plan.agent("gpt").concurrency, plan.limits.run.tokens, plan.endpoints[0].concurrency) == (3, 25, 9)
    with pytest.raises(FileError, match=r"--set agents\.nobody"):
        load_plan(path, ["agents.nobody.concurrency=3"])


def test_a_money_limit_needs_a_price_for_every_model(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL)
    with pytest.raises(FileError, match="agent 'gpt' has no `price`"):
        load_plan(path, ["limits.run.money=2.5"])
    assert load_plan(path, ["limits.run.money=2.5", "agents.gpt.price={input: 1, output: 2}"]).limits.run.money == 2.5


def test_a_run_knows_headers_and_query_and_lets_all_other_ways_to_an_endpoint_change(tmp_path: Path) -> None:
    before = load_plan(written(tmp_path, SMALL)).identity()
    changes = {
        "api_key_file": "k",
        "api_key_command": "[print-key]",
        "key_ttl_s": "5",
        "api_key_header": "api-key",
        "proxy": "env",
        "stream": "true",
        "tls.verify": "false",
    }
    for field, value in changes.items():
        assert load_plan(tmp_path / "plan.yaml", [f"endpoints.shared.{field}={value}"]).identity() == before, field
    for field, value in {"headers.x-team": "b", "query.api-version": "v2"}.items():
        changed = load_plan(tmp_path / "plan.yaml", [f"endpoints.shared.{field}={value}"]).identity()
        (told,) = differences(before, changed)
        assert told.startswith(f"endpoints.shared.{field.partition('.')[0]}")


def test_a_seed_that_grows_with_the_epoch_shapes_trials_where_there_are_some(tmp_path: Path) -> None:
    def identity(*overrides: str) -> JsonValue:
        return load_plan(written(tmp_path, SMALL), ["agents.gpt.sampling.seed=5", *overrides]).identity()

    fixed = "agents.gpt.seed_per_epoch=false"
    assert identity() == identity(fixed), "of one epoch"
    (told,) = differences(identity("epochs=2", fixed), identity("epochs=2"))
    assert told == "agents.gpt.seed_per_epoch: None -> True"


def test_the_file_of_a_key_is_taken_relative_to_the_plan(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path, SMALL), ["endpoints.shared.api_key_file=secrets/key"])
    assert plan.endpoints[0].api_key_file == tmp_path / "secrets" / "key"


def test_a_certificate_goes_unverified_on_this_machine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = ["endpoints.shared.tls.verify=false", "endpoints.shared.base_url=https://model.example/v1"]
    with pytest.raises(FileError, match=r"endpoints\.shared\.tls\.verify: false is only for an endpoint of this"):
        load_plan(written(tmp_path, SMALL), elsewhere)
    monkeypatch.setenv("PROCTOR_INSECURE_TLS", "1")
    assert not load_plan(tmp_path / "plan.yaml", elsewhere).endpoints[0].tls.verify


def test_data_may_move_between_resumes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    plans = []
    for folder in (tmp_path, tmp_path / "a"):
        (folder / "d.jsonl").write_text(SHIPPED.read_text())
        plans.append(load_plan(written(folder, SMALL + "    data: d.jsonl\n")))
    assert plans[0] != plans[1]
    assert differences(plans[0].identity(), plans[1].identity()) == []


def test_concurrency_and_budget_may_change_between_resumes_but_models_may_not(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path, SMALL))
    faster = with_overrides(plan, ["agents.gpt.concurrency=99", "limits.run.tokens=5", "local.workers=2"])
    assert differences(plan.identity(), faster.identity()) == []
    other = with_overrides(plan, ["agents.gpt.model=gpt-10", "agents.gpt.sampling.temperature=1"])
    lines = differences(plan.identity(), other.identity())
    assert "agents.gpt.model: 'gpt-9' -> 'gpt-10'" in lines
    assert len(lines) == 2


def test_the_schema_accepts_what_the_plan_accepts_and_refuses_typos() -> None:
    schema = Plan.model_json_schema()
    jsonschema.validate(yaml.safe_load(SMALL), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**yaml.safe_load(SMALL), "epoks": 3}, schema)
    assert json.dumps(schema)


def test_trials_are_every_pair_by_epoch_by_sample_numbered_from_zero(tmp_path: Path) -> None:
    plan = with_overrides(load_plan(written(tmp_path, SMALL)), ["epochs=2"])
    trials = list(PlannedTrials(plan, {"db-own": {"x": "table-1", "y": "table-1"}}))
    assert [trial.id for trial in trials] == list(range(8))
    assert len({(t.agent, t.task, t.sample, t.epoch) for t in trials}) == 8
    assert {t.cluster for t in trials} == {"table-1"}


def test_seeds_are_equal_for_all_agents_and_differ_by_sample_and_epoch() -> None:
    seeds = {trial_seed(1, "t", sample, epoch) for sample in "abc" for epoch in range(3)}
    assert len(seeds) == 9
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert trial_seed(1, "t", "a", 0) == trial_seed(1, "t", "a", 0) != trial_seed(2, "t", "a", 0)


def test_a_plan_that_chooses_no_samples_is_stored_as_in_earlier_versions() -> None:
    fields: dict[str, object] = {"agents": [{"name": "a", "builtin": "naive"}]}
    plan = Plan.model_validate({**fields, "tasks": [{"name": "t", "environment": "ltp"}]})
    assert "samples" not in plan.identity()
    assert "samples" not in plan.model_dump(mode="json")["tasks"][0]
    chosen = Plan.model_validate({**fields, "tasks": [{"name": "t", "environment": "ltp", "samples": {"limit": 2}}]})
    assert chosen.identity() == {**plan.identity(), "samples": {"t": {"limit": 2}}}


def test_a_pattern_of_samples_that_matches_nothing_is_told_with_its_own_line(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    samples = "    samples:\n      limit: 3\n      include:\n        - select-*\n        - selekt-*\n"
    task = "tasks:\n  - name: db\n    environment: db\n    parameters: {engine: sqlite}\n"
    plan.write_text(f"agents: [{{name: naive, builtin: naive}}]\n{task}{samples}")
    with pytest.raises(FileError, match=r"plan\.yaml:10: tasks\.db\.samples\.include\.1: 'selekt-\*' matches nothing"):
        load_plan(plan)


TEXT = "\U0001f642 e\u0301\u2028\x85שלום\U0010ffff"


def test_characters_are_the_same_from_files_options_python_and_the_store(tmp_path: Path) -> None:
    agent = {"name": "gpt", "endpoint": "shared", "model": TEXT, "sampling": {TEXT: [TEXT]}}
    fields = {**yaml.safe_load(SMALL), "agents": [agent]}
    from_file = load_plan(written(tmp_path, json.dumps(fields)))
    assert (from_file.agents[0].model, from_file.agents[0].sampling) == (TEXT, {TEXT: [TEXT]})
    assert load_plan(written(tmp_path, yaml.safe_dump(fields, allow_unicode=True))) == from_file
    texts = override_texts({"agents.gpt.model": TEXT, "agents.gpt.sampling": {TEXT: [TEXT]}})
    plain = {**fields, "agents": [{**agent, "model": "m", "sampling": {}}]}
    assert load_plan(written(tmp_path, json.dumps(plain)), texts) == from_file
    assert with_overrides(Plan.model_validate_json(from_file.model_dump_json()), ["epochs=1"]) == from_file
    request = new_request(fields, None, None, {}, name="r", folder=tmp_path, store=None, limit=None)
    assert request.plan.agents == from_file.agents
    request.store.engine.dispose()
    with pytest.raises(PlanError, match="half a character"):
        new_request(
            plain, None, None, {"agents.gpt.model": "\ud83d"}, name="s", folder=tmp_path, store=None, limit=None
        )


def test_a_made_plan_is_plain_yaml_for_other_readers_too() -> None:
    text = plan_text(["vendor/\U0001f642 e\u0301"], ["db"], base_urls=["http://127.0.0.1:9/v1"], made_by="proctor")
    assert yaml.safe_load(text)["agents"][0]["model"] == "vendor/\U0001f642 e\u0301"
    assert made_plan(text).agents[0].model == "vendor/\U0001f642 e\u0301"


@pytest.mark.parametrize(
    ("agent", "endpoint", "trials", "said"),
    [
        ({}, {}, 16, "bound by endpoint e"),
        ({"concurrency": 5}, {}, 5, "bound by its own `concurrency`"),
        ({}, {"concurrency": 90}, 90, "bound by the sessions of db-own"),
        ({}, {"base_url": ["http://a/v1", "http://b/v1"]}, 32, "bound by endpoint e, some 16 at each of its 2 servers"),
        ({}, {"base_url": ["http://a/v1", {"base_url": "http://b/v1", "concurrency": 4}]}, 20, "bound by endpoint e"),
        ({"builtin": "naive", "endpoint": None, "model": None}, {}, 256, None),
        ({"builtin": "function", "endpoint": None, "model": None}, {}, 64, None),
        ({"kind": "command", "command": ["x", "{url}"], "endpoint": None, "model": None}, {}, 4, None),
    ],
)
def test_an_agent_without_concurrency_plays_what_its_endpoint_takes(
    agent: dict[str, object], endpoint: dict[str, object], trials: int, said: str | None
) -> None:
    plan = Plan.model_validate(
        {
            "endpoints": [{"name": "e", "base_url": "http://a/v1", **endpoint}],
            "agents": [{"name": "a", "endpoint": "e", "model": "m", **agent}],
            "tasks": [{"name": "db-own", "environment": "db"}],
        }
    )
    assert plan.concurrency_of(plan.agents[0]) == trials
    if said is not None:
        line = trials_at_once(plan, plan.agents[0], {"db-own": 80})
        assert f"up to {min(trials, 80)} trials" in line
        assert said in line


def test_the_urls_of_several_servers_may_change_and_a_single_one_not() -> None:
    def identity(**endpoint: object) -> object:
        return (
            with_overrides(Plan.model_validate(yaml.safe_load(SMALL)), [])
            .model_copy(update={"endpoints": (Endpoint.model_validate({"name": "shared", **endpoint}),)})
            .identity()
        )

    several = identity(base_url=["http://a/v1", "http://b/v1"])
    assert several == identity(base_url=[{"base_url": "http://c/v1", "concurrency": 3}])
    assert several == identity(replicas_file="servers")
    assert several != identity(base_url="http://a/v1")
    assert identity(base_url="http://a/v1") != identity(base_url="http://b/v1")

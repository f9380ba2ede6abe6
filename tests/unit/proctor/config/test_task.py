"""Task definitions of plans: built into environments, or rejected with file, task, field and fix."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner
from pydantic import model_validator

from eval_client.cli.plans.plan_file import plan
from eval_client.plan.entries import Endpoint
from proctor import registry
from proctor.config.task import TaskDefinition, load_tasks, task_file_text
from proctor.config.yaml import FileError
from proctor.environment import Agent, Environment
from proctor.llm.config import ChatConfig
from proctor.types import Finish


class Shelf(Environment):
    """Counts books; never played here."""

    capacity: ClassVar[int] = 5
    operational: ClassVar[frozenset[str]] = frozenset({"lamps"})
    data: Path | None = None
    overlay: Path | None = None
    books: int = 3
    lamps: int = 1
    keeper: ChatConfig | None = None
    keepers: tuple[ChatConfig, ...] = ()

    @model_validator(mode="after")
    def _one_shelf_has_no_room(self) -> "Shelf":
        if self.books > 100:
            raise ValueError("a shelf holds 100 books")
        return self

    def samples(self) -> Sequence[str]:
        if self.data is not None:
            raise ValueError(f"{self.data}: record 1: title: missing; add it")
        return [str(book) for book in range(self.books)]

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = registry.load
    monkeypatch.setattr(registry, "load", lambda name: Shelf if name == "shelf" else real(name))


def task(**fields: object) -> TaskDefinition:
    return TaskDefinition.model_validate({"name": "books", "environment": "shelf", **fields})


def test_parameters_become_the_environments_fields_and_texts_set_them() -> None:
    assert task(parameters={"books": 7}).build() == Shelf(books=7)
    assert task(data="x.jsonl").build() == Shelf(data=Path("x.jsonl"))
    texts = task(parameters={"books": 1}).with_parameters(["books=4", "overlay=o=p"])
    assert texts.build() == Shelf(books=4, overlay=Path("o=p"))
    assert [task(capacity=capacity).sessions() for capacity in (None, 2)] == [5, 2]


def test_what_shapes_no_trial_is_no_part_of_the_shape() -> None:
    keeper = {"model": "m", "sampling": {"temperature": 0}, "api_key_env": "KEY", "deadline_s": 5, "max_tries": 2}
    parameters = {"books": 2, "lamps": 4, "overlay": "o", "keeper": keeper, "keepers": [keeper, {"model": "n"}]}
    defined = task(capacity=9, data="shelf.json", parameters=parameters)
    shaping = {"model": "m", "sampling": {"temperature": 0}}
    assert defined.shape() == {
        "name": "books",
        "environment": "shelf",
        "parameters": {"books": 2, "keeper": shaping, "keepers": [shaping, {"model": "n"}]},
    }


def test_every_path_is_taken_relative_to_the_file() -> None:
    keeper = {"model": "m", "api_key_file": "secrets/key"}
    parameters = {"overlay": "b", "books": 1, "keeper": keeper, "keepers": [keeper]}
    moved = task(data="a", parameters=parameters).relative_to(Path("/plans")).build().model_dump()
    assert (moved["data"], moved["overlay"], moved["books"]) == (Path("/plans/a"), Path("/plans/b"), 1)
    assert moved["keeper"]["api_key_file"] == Path("/plans/secrets/key")
    assert moved["keepers"][0]["api_key_file"] == Path("/plans/secrets/key")
    assert task(data="/else/a").relative_to(Path("/plans")).data == Path("/else/a")


PLACES = """\
endpoints:
  - {name: lab, base_url: "http://127.0.0.1:9/v1", dialect: messages, api_key_file: key, concurrency: 3, rpm: 9}
  - {name: other, headers: {x-team: a}, query: {v: "1"}, stream: true, tls: {verify: false}, key_ttl_s: 5}
tasks:
  - {name: t, environment: shelf, parameters: {keeper: {endpoint: lab, model: m, deadline_s: 3}}}
  - {name: u, environment: shelf, parameters: {keeper: {endpoint: other, model: n, base_url: "http://127.0.0.1:8/v1"}}}
  - {name: v, environment: shelf, parameters: {keeper: {model: n}}}
"""


SEVERAL = "[{model: n}, {endpoint: lab, model: m}]"


def test_several_models_of_a_task_may_each_name_an_endpoint(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(PLACES.replace("keeper: {model: n}", f"keepers: {SEVERAL}"))
    plain, named = load_tasks(path)[-1].build().model_dump()["keepers"]
    assert (plain["base_url"], named["base_url"]) == (None, "http://127.0.0.1:9/v1")
    assert (named["model"], named["api_key_file"]) == ("m", tmp_path / "key")
    path.write_text(PLACES.replace("keeper: {model: n}", f"keepers: {SEVERAL.replace('lab', 'leb')}"))
    with pytest.raises(FileError, match=r"plan.yaml:7: tasks.v.parameters.keepers.1.endpoint: unknown name 'leb'"):
        load_tasks(path)


def test_a_model_of_a_task_has_all_fields_of_the_endpoint_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLACES)
    first, second, third = (defined.build().model_dump()["keeper"] for defined in load_tasks(tmp_path / "plan.yaml"))
    assert (first["base_url"], first["dialect"], first["deadline_s"]) == ("http://127.0.0.1:9/v1", "messages", 3)
    assert (first["api_key_file"], first["api_key_env"]) == (tmp_path / "key", "ANTHROPIC_API_KEY")
    assert (second["headers"], second["query"], second["stream"]) == ({"x-team": "a"}, {"v": "1"}, True)
    assert (second["tls"], second["key_ttl_s"], second["base_url"]) == ({"verify": False}, 5, "http://127.0.0.1:8/v1")
    assert third == ChatConfig(model="n").model_dump()


def test_every_field_of_an_endpoint_reaches_the_models_that_name_it() -> None:
    own = {"name", "concurrency", "rpm", "tpm", "shared"}
    assert Endpoint.model_fields.keys() - own == ChatConfig.of_endpoint
    assert ChatConfig.model_fields.keys() >= ChatConfig.of_endpoint


def test_an_endpoint_that_is_unknown_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLACES.replace("endpoint: lab", "endpoint: laab"))
    with pytest.raises(FileError) as refused:
        load_tasks(tmp_path / "plan.yaml")
    assert "plan.yaml:5: tasks.t.parameters.keeper.endpoint: unknown name 'laab'" in str(refused.value)
    assert "known are: lab, other; did you mean lab?" in str(refused.value)


def test_broken_data_are_told_once_with_the_task(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("{}\n")
    with pytest.raises(FileError) as refused:
        task(data=tmp_path / "d.jsonl").opened()
    assert str(refused.value) == f"tasks.books.data: {tmp_path}/d.jsonl: record 1: title: missing; add it"
    with pytest.raises(FileError) as refused:
        task(parameters={"boks": 1}).opened()
    assert str(refused.value).count("tasks.books") == 1


def test_a_task_file_that_hosts_and_servers_get_holds_every_character(tmp_path: Path) -> None:
    known = task(data="/\U0001f4c1/x.jsonl", parameters={"overlay": "/\U0001f642\u2028 \x85שלום\U0010ffff", "books": 1})
    (tmp_path / "tasks.yaml").write_text(task_file_text([known]))
    assert load_tasks(tmp_path / "tasks.yaml") == (known,)


def test_a_task_file_is_loaded_and_a_plan_is_one_too(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        "agents: [{name: a}]\ntasks:\n  - {name: t, environment: shelf, data: d}\n  - {name: u, environment: shelf}\n"
    )
    first, second = load_tasks(tmp_path / "plan.yaml")
    assert (first.name, first.data, second.name) == ("t", tmp_path / "d", "u")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: []\n", ":1: tasks: must hold at least 1 item"),
        ("task: []\n", ":1: tasks: is missing; add this field"),
    ],
)
def test_a_wrong_task_file_names_file_line_and_field(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tasks.yaml").write_text(text)
    with pytest.raises(FileError) as refused:
        load_tasks(tmp_path / "tasks.yaml")
    assert str(refused.value).startswith(str(tmp_path / "tasks.yaml"))
    assert message in str(refused.value)


def test_a_model_of_a_task_takes_the_servers_of_the_endpoint_that_it_names(tmp_path: Path) -> None:
    many = 'base_url: ["http://127.0.0.1:8/v1", {base_url: "http://127.0.0.1:9/v1", concurrency: 4}]'
    for several in (many, "replicas_file: servers"):
        (tmp_path / "plan.yaml").write_text(
            PLACES.replace("tasks:", f"  - {{name: many, {several}}}\ntasks:", 1).replace(
                "endpoint: other", "endpoint: many"
            )
        )
        named = json.dumps([task.parameters for task in load_tasks(tmp_path / "plan.yaml")])
        shown = ("8/v1", "9/v1") if several is many else (str(tmp_path / "servers"), '"replicas_of": "many"')
        assert [part for part in shown if part not in named] == []


def test_the_schema_says_what_fields_mean() -> None:
    printed = json.loads(CliRunner().invoke(plan, ["print", "--schema"]).stdout)
    assert printed["properties"]["epochs"]["description"] == "How often each agent plays each sample."
    assert printed["$defs"]["SampleSelection"]["properties"]["limit"]["description"].startswith("Play at most so many")

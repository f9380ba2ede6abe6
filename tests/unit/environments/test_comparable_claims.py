"""When a world says that its scores can be compared with published ones: any one value that differs takes that back."""

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from environments.alfworld import dataset as games
from environments.alfworld.environment import ALFWorld
from environments.alfworld.published_prompt import EXAMPLES
from environments.card_game.environment import CardGame
from environments.database import environment as databases
from environments.database.environment import Database
from environments.knowledge_graph import environment as graphs
from environments.knowledge_graph.environment import KnowledgeGraph
from environments.lateral_thinking.environment import LateralThinking
from environments.mind2web.environment import Mind2Web
from environments.operating_system.dataset import PublishedFiles, load, other_samples, published_files
from environments.operating_system.environment import OperatingSystem
from environments.simulbench import dataset
from environments.simulbench.environment import SimulBench
from environments.stss.environment import Stss
from environments.webshop.catalogue import store
from environments.webshop.catalogue.make import DATABASE
from environments.webshop.catalogue.product import Goal
from environments.webshop.environment import WebShop
from proctor.environment import Environment
from proctor.published import Source, fingerprint, records_hash, records_of
from tests.support import SHARED_DATA

CHANGES = 40
"""Random changes of each world's data, and of its prompts."""
TOLD = [
    {"role": "user", "content": "Do it.\n"},
    {"role": "agent", "content": "Yes."},
    {"role": "user", "content": "Then?"},
    {"role": "agent", "content": "So."},
]
JUDGE = {
    "EVAL_SYSTEM_RPOMPT": "Be a judge.",
    "EVAL_PROMPT_SCORING": "{SIMULATION} {DIALOGUE} {RESPONSE} Rate it.",
}
HOUSE: dict[str, Any] = {"instruction": "Act.", "consent": "Ok.", "games": {}}
for _name in ("put", "clean", "heat", "cool", "puttwo", "examine"):
    HOUSE["games"] |= {_name: [f"A {_name}.", "ACTION: look", "None.", "ACTION: done"]}
HOUSE_FILE = """
class ALFWorld(Task):
    def get_task_instruction():
        return {instruction!r}
    async def alfworld_run(self, session, env):
        session.inject({{"role": "agent", "content": {consent!r}}})
"""


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a piece of JSON that are neither lists nor objects with something in them."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [path_ for key, item in items for path_ in leaves(item, (*path, key))]
    yield from inner or [path]


def other(value: Any, chance: random.Random) -> Any:
    """A value that differs from a leaf, as little as possible."""
    match value:
        case bool():
            return not value
        case int() | float():
            return chance.choice([value + 1, str(value)])
        case str() if value:
            at = chance.randrange(len(value))
            return chance.choice([value[:at] + value[at + 1 :], f"{value[:at]}x{value[at:]}", value + " "])
        case str():
            return "x"
    return 0


def changed(value: Any, chance: random.Random) -> Any:
    """A copy of a piece of JSON with one change: a leaf has another value, or a value is missing or stands twice."""
    new = copy.deepcopy(value)
    *way, last = chance.choice(list(leaves(value)))
    at = new
    for key in way:
        at = at[key]
    kind = chance.randrange(4)
    if kind == 0:
        del at[last]
    elif kind == 1 and isinstance(at, list):
        at.insert(last, at[last])
    else:
        at[last] = other(at[last], chance)
    return new


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same JSON with the keys of its objects in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], chance) for key in chance.sample(list(value), len(value))}
    return [shuffled(item, chance) for item in value] if isinstance(value, list) else value


class World(NamedTuple):
    """A world whose scores can be compared, and what may not be changed of it."""

    environment: Callable[[Path, Any, Any], Environment]
    """Makes it of its folder, data and prompts, which it writes there."""
    data: Any
    """Parsed."""
    prompts: Any
    fields: tuple[dict[str, Any], ...]
    """Settings, each of which takes the claim back."""
    harmless: tuple[dict[str, Any], ...] = ()


def lines(records: Any) -> str:
    return "".join(f"{json.dumps(record)}\n\n" for record in records)


def messages(folder: Path, told: Any) -> Path:
    return written(folder / "told.json", json.dumps(told))


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def database(folder: Path, data: Any, told: Any) -> Environment:
    return Database(data=written(folder / "dev.jsonl", lines(data)), prompts=messages(folder, told))


def graph(folder: Path, data: Any, told: Any) -> Environment:
    file = written(folder / "dev.json", json.dumps(data, indent=3))
    ontology = SHARED_DATA / "kg" / "ontology"
    return KnowledgeGraph(
        data=file,
        ontology=ontology,
        endpoint="http://localhost/sparql",
        world="freebase",
        profile="compat",
        prompts=messages(folder, told),
    )


def shell(folder: Path, data: Any, told: Any) -> Environment:
    """`data`: the records, and the scripts by name."""
    records, scripts = data
    for name, text in scripts.items():
        written(folder / "scripts/dev" / name, text)
    return OperatingSystem(data=written(folder / "dev.json", json.dumps(records)), prompts=messages(folder, told))


def house(folder: Path, data: Any, told: Any) -> Environment:
    """`data`: the list, and the games by path."""
    listed, texts = data
    for path, game in texts.items():
        written(folder / path, json.dumps(game))
    written(folder / "p/task.py", HOUSE_FILE.format(**{"instruction": "", "consent": "", **told}))
    written(folder / "p" / EXAMPLES, json.dumps(told.get("games")))
    return ALFWorld(data=folder, split=written(folder / "dev.json", json.dumps(listed)), prompts=folder / "p")


def judged(folder: Path, data: Any, told: Any) -> Environment:
    file = written(folder / "prompts.py", "".join(f"{name} = {text!r}\n" for name, text in told.items()))
    return SimulBench(
        data=written(folder / "all.jsonl", lines(data)),
        prompts=file,
        profile="compat",
        ensure_ascii=True,
        judge={"model": "gpt-4"},
    )


def shopping(folder: Path, data: Any, told: Any) -> Environment:
    """`data`: the words of the goals 200 to 499."""
    shutil.rmtree(folder / "shop", ignore_errors=True)
    (folder / "shop").mkdir(parents=True)
    connection = store.create(folder / "shop" / DATABASE)
    meta = store.Meta(
        format=store.FORMAT,
        products=1_180_000,
        goals=12_087,
        average_length=100.0,
        invented=False,
        price_seed=0,
        nouns="en_core_web_lg 3.7.1, spaCy 3.7.5",
        files={},
        problems={},
    )
    store.finish(connection, [goal("one of the first")] * 200 + [goal(str(text)) for text in data], meta)
    connection.close()
    return WebShop(data=folder / "shop", goals=(200, 280), prompts=messages(folder, told))


def goal(words: str) -> Goal:
    empty: dict[str, Any] = dict.fromkeys(("category", "query", "name", "product_category"), "")
    text = f"{words}, and price lower than 30.00 dollars"
    return Goal(asin="B", instruction=text, attributes=(), options=(), price_upper=30.0, nouns=(), **empty)


def read(name: str) -> Any:
    return json.loads((SHARED_DATA / name).read_text(encoding="utf-8"))


def read_lines(name: str) -> Any:
    return [json.loads(line) for line in (SHARED_DATA / name).read_text(encoding="utf-8").splitlines()]


def worlds() -> Mapping[str, Callable[[], World]]:
    """Each world whose scores may be compared, with the published data, as far as they are at hand."""
    return {
        "database": lambda: World(
            database,
            read_lines("db/dev.jsonl"),
            TOLD,
            ({"profile": "strict"}, {"engine": "sqlite"}, {"statement_limit_s": 29}, {"protocol": "tools"}),
            ({"statement_limit_s": 60},),
        ),
        "knowledge_graph": lambda: World(
            graph,
            read("kg/dev.json"),
            TOLD,
            (
                {"profile": "strict"},
                {"world": "mine"},
                {"max_rows": 9_999},
                {"query_limit_s": 29},
                {"max_relations_shown": 1_000},
                {"graph": SHARED_DATA / "kg/mini_dev.nq", "endpoint": None},
                {"protocol": "tools"},
            ),
            ({"max_rows": 10_001}, {"query_limit_s": 60}),
        ),
        "operating_system": lambda: World(
            shell,
            [read("os/data/dev.json"), scripts_of(SHARED_DATA / "os/scripts/dev")],
            TOLD,
            (
                {"profile": "strict"},
                {"profile": "errata"},
                {"engine": "namespace"},
                {"disk": "tmpfs"},
                {"image": "ubuntu"},
                {"on_init_error": "continue"},
                {"command_limit_s": 29},
                {"check_limit_s": 59},
                {"protocol": "tools"},
                *({"limits": {name: least}} for name, least in SMALL.items()),
            ),
            ({"pool": 0}, {"image": "local-os/default"}, {"limits": {"memory_mb": 2048}}, {"command_limit_s": 60}),
        ),
        "alfworld": lambda: World(
            house,
            games_of("alfworld/splits/agentbench_v0.2_dev.json"),
            HOUSE,
            ({"profile": "strict"}, {"per_type": 3}, {"per_type": 100}, {"split": None}, {"protocol": "tools"}),
        ),
        "simulbench": lambda: World(
            judged,
            read_lines("simulbench/simulbench_dev.jsonl"),
            JUDGE,
            (
                {"profile": "strict"},
                {"mode": "live"},
                {"ensure_ascii": False},
                {"system": "Be."},
                {"max_response_chars": 31_999},
                {"judge": None},
                *({"judge": {"model": "gpt-4", **form}} for form in JUDGED_OTHERWISE),
            ),
            ({"judge": {"model": "gpt-4", "sampling": {"max_tokens": 1024}}}, {"max_response_chars": 64_000}),
        ),
        "webshop": lambda: World(
            shopping,
            [each["instruction"] for each in read("webshop/human_goals_200_499.json")],
            TOLD,
            ({"profile": "strict"}, {"goals": None}, {"goals": (200, 279)}, {"candidates": 999}, {"protocol": "tools"}),
            ({"goals": (0, 200)}, {"candidates": 1_000}),
        ),
    }


SMALL = {"memory_mb": 511, "cpus": 0.9, "processes": 255, "file_mb": 1023, "disk_mb": 2047, "max_age_s": 7199}
JUDGED_OTHERWISE: tuple[dict[str, Any], ...] = (
    {"model": "gpt-4o"},
    {"sampling": {"temperature": 1}},
    {"sampling": {"temperature": False}},
    {"sampling": {"max_tokens": 1023}},
    {"sampling": {"top_p": 1}},
    {"system_role": "user"},
    {"reasoning": "always"},
)


def scripts_of(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def games_of(split: str) -> list[Any]:
    listed = read(split)
    return [listed, {path: read(f"alfworld/{path}") for paths in listed.values() for path in paths}]


@pytest.fixture(params=sorted(worlds()))
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world that says that it can be compared: its prompts count as the published ones, which are not at hand."""
    name = request.param
    made = worlds()[name]()
    found = made.environment(tmp_path / "found", made.data, made.prompts)
    place = f"environments.{name}.environment.PROMPT"
    monkeypatch.setattr(place, Source("FILE", frozenset((fingerprint(told(found)),)), has_lead=True))
    if isinstance(found, SimulBench):
        assert found.data is not None
        monkeypatch.setattr(
            f"environments.{name}.environment.PUBLISHED", {"F": records_hash(records_of(dataset.read(found.data)))}
        )
    return made


def told(environment: Environment) -> object:
    """What the fingerprint of a world's prompts is made of."""
    match environment:
        case Database() | KnowledgeGraph():
            return Source("", frozenset()).read(environment.prompts or Path())
        case OperatingSystem() | WebShop():
            return Source("", frozenset(), has_lead=True).read(environment.prompts or Path())
        case ALFWorld():
            assert environment._published is not None
            return environment._published.texts()
        case SimulBench():
            assert environment._setting.published is not None
            return environment._setting.published.texts()
    raise AssertionError(environment)


def claim(of: World, folder: Path, data: Any = None, prompts: Any = None, **fields: Any) -> str | None:
    """Why a world's scores can't be compared; what is refused can't be played at all."""
    try:
        found = of.environment(folder, of.data if data is None else data, prompts or of.prompts)
        given = {name: getattr(found, name) for name in found.model_fields_set}
        if fields.get("protocol") == "tools":
            del given["prompts"]
        made = type(found).model_validate({**given, **fields})
        reason = made.not_comparable_because()
        return reason if made.samples() else "no samples"
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        return f"refused: {error}"


@pytest.mark.shared
def test_the_published_files_are_known_whatever_their_spacing_and_order_of_keys(world: World, tmp_path: Path) -> None:
    assert claim(world, tmp_path / "a") is None
    asked = world.environment(tmp_path / "a", world.data, world.prompts).published_sampling()
    assert asked == {"temperature": 0, **({"max_tokens": 1024} if world.environment is judged else {})}
    assert claim(world, tmp_path / "b", shuffled(world.data, random.Random(1))) is None
    for number, fields in enumerate(world.harmless):
        assert claim(world, tmp_path / f"c{number}", **fields) is None, fields


@pytest.mark.shared
def test_any_change_of_one_value_of_the_data_takes_the_claim_back(world: World, tmp_path: Path) -> None:
    for seed in range(CHANGES):
        data = changed(world.data, random.Random(seed))
        assert data != world.data
        assert claim(world, tmp_path / str(seed), data) is not None, seed


@pytest.mark.shared
def test_any_change_of_one_word_of_the_prompts_takes_the_claim_back(world: World, tmp_path: Path) -> None:
    for seed in range(CHANGES):
        prompts = changed(world.prompts, random.Random(seed))
        assert claim(world, tmp_path / str(seed), prompts=prompts) is not None, prompts


@pytest.mark.shared
def test_any_setting_that_published_runs_did_not_have_takes_the_claim_back(world: World, tmp_path: Path) -> None:
    for number, fields in enumerate(world.fields):
        assert claim(world, tmp_path / str(number), **fields) is not None, fields


@pytest.mark.shared
def test_an_ontology_of_ones_own_is_not_the_published_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = SHARED_DATA / "kg" / "ontology"
    for name in ("vocab.json", "fb_roles", "fb_types", "reverse_properties"):
        written(tmp_path / "ontology" / name, (published / name).read_text(encoding="utf-8"))
    found = graph(tmp_path, read("kg/dev.json"), TOLD)
    known = Source("FILE", frozenset((fingerprint(told(found)),)))
    monkeypatch.setattr("environments.knowledge_graph.environment.PROMPT", known)
    own = found.model_copy(update={"ontology": tmp_path / "ontology"})
    assert own.not_comparable_because() is None
    first, rest = (published / "fb_roles").read_text(encoding="utf-8").split("\n", 1)
    for text in (rest, f"{first}x\n{rest}"):
        written(tmp_path / "ontology" / "fb_roles", text)
        assert "other names or relations" in str(
            found.model_copy(update={"ontology": tmp_path / "ontology"}).not_comparable_because()
        )


@pytest.mark.shared
@pytest.mark.parametrize("fields", [{}, {"steps": 100}, {"profile": "strict"}, {"protocol": "tools"}])
def test_worlds_whose_published_data_are_not_to_be_had_never_claim_anything(fields: dict[str, Any]) -> None:
    for world in (Mind2Web, LateralThinking, CardGame, Stss):
        known = {name: value for name, value in fields.items() if name in world.model_fields}
        assert world.model_validate(known).not_comparable_because()


@pytest.mark.shared
def test_what_is_shipped_are_the_facts_of_the_fingerprints() -> None:
    files = [each for each in read("fingerprints/published.json")["files"] if each["split"] in ("dev", "standard")]
    of_world: dict[str, set[str]] = {each["world"]: set() for each in files}
    for each in files:
        if "records" in each and not each["file"].endswith("6-backup.json"):
            of_world[each["world"]].add(each["records_sha256"])
    shipped = published_files()
    assert set(databases.PUBLISHED.values()) == of_world["db"]
    assert set(graphs.PUBLISHED.values()) == of_world["kg"]
    assert set(games.LISTS.values()) == of_world["alfworld"]
    assert [len(split) for split in shipped.records.values()] == [16, 1]
    assert {found for split in shipped.records.values() for found in split.values()} <= of_world["os"]
    scripts = {(each["file"].partition("/scripts/")[2], each["sha256"]) for each in files}
    assert {(path, found) for found, paths in shipped.scripts.items() for path in paths} <= scripts


def test_a_split_of_many_files_is_told_by_all_of_them_each_with_its_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = {"check": [{"file": "check/a.py"}]}
    made = {f"{folder}/x.json": [{"description": folder, "evaluation": check}] for folder in ("1", "2")}
    scripts = {f"{folder}/check/a.py": f"print({folder})" for folder in ("1", "2")}
    known = PublishedFiles(
        records={"standard": {path: records_hash(records) for path, records in made.items()}},
        scripts={sha256(text.encode()).hexdigest(): (path,) for path, text in scripts.items()},
    )
    monkeypatch.setattr("environments.operating_system.dataset.published_files", lambda: known)

    def other(name: str, records: Mapping[str, Any], texts: Mapping[str, str]) -> str | None:
        for path, found in records.items():
            written(tmp_path / name / "data" / path, json.dumps(found))
        for path, text in texts.items():
            written(tmp_path / name / "scripts" / path, text)
        return other_samples(load(tmp_path / name / "data", tmp_path / name / "scripts"))

    assert other("same", made, scripts) is None
    swapped = {"1/check/a.py": scripts["2/check/a.py"], "2/check/a.py": scripts["1/check/a.py"]}
    assert "is another script than the published one" in str(other("swapped", made, swapped))
    for name, records in {
        "half": {"1/x.json": made["1/x.json"]},
        "more": {**made, "1/y.json": made["1/x.json"]},
        "twice": {"1/x.json": made["1/x.json"], "2/x.json": made["1/x.json"]},
    }.items():
        assert "the samples are not those" in str(other(name, records, scripts)), name

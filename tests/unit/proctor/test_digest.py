"""What changes the default digest, and the digests of our own environments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import ConfigDict, Field

from proctor import registry
from proctor.environment import Agent, Environment
from proctor.llm.config import ChatConfig
from proctor.types import Finish

OURS = {
    "alfworld": "f67052121b39ee17e292bf7e45aa3597",
    "card_game": "2e4e56701e653fc1217b5bddc0918706",
    "db": "0fa10d481693001d78afb954880c6d0f",
    "kg": "c1bf4b62add802994bd853dea7d34945",
    "ltp": "fb525afba209a0b4e313d315aa6b0cff",
    "mind2web": "4376aafc545bac846aa5ac28a73c3e86",
    "os": "762441928f44ff96aad97d0fc62548ab",
    "simulbench": "20f006748918149dc5ac5d7ae26e1523",
    "stss": "afc596a082f84ac2f3d15403f1d05bde",
    "webshop": "6e5d729f1d2302e10fbe9febd932a2da",
}
"""The digest of each environment with default parameters. Change one only with its `revision`, where trials changed."""


@pytest.mark.parametrize("name", OURS)
def test_no_digest_of_ours_changes_unnoticed(name: str) -> None:
    assert registry.load(name)().digest() == OURS[name]


def test_every_environment_of_ours_has_its_digest_here() -> None:
    assert set(OURS) <= set(registry.names())


@dataclass(frozen=True)
class Door:
    colour: str
    plan: Path | None = None


class House(Environment):
    """An environment for its digest only."""

    operational: ClassVar[frozenset[str]] = frozenset({"cache", "pool"})
    rooms: int = 3
    data: Path | None = None
    more: tuple[Path, ...] = ()
    judge: ChatConfig | None = None
    weights: Mapping[str, float] = Field(default_factory=dict)
    words: frozenset[str] = frozenset()
    door: Door | None = None
    pool: int = 4
    cache: Path | None = None

    def samples(self) -> Sequence[str]:
        return ["a"]

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        raise AssertionError


def test_it_is_hex_digits_that_another_process_gives_too() -> None:
    assert House(words=frozenset("abcdefgh")).digest() == "8ce23c7373c427b2fd733322f827d626"


@pytest.mark.parametrize(("name", "revision", "same"), [("House", 1, True), ("Home", 1, False), ("House", 2, False)])
def test_the_name_and_the_revision_of_the_class_count_and_not_its_place(name: str, revision: int, same: bool) -> None:
    elsewhere: type[House] = type(name, (House,), {"__module__": "elsewhere", "revision": revision})
    assert (elsewhere().digest() == House().digest()) is same


@pytest.mark.parametrize(
    "fields",
    [
        {"rooms": 4},
        {"judge": {"model": "m"}},
        {"judge": {"model": "m", "sampling": {"temperature": 0}}},
        {"weights": {"a": 1.5}},
        {"words": {"a"}},
        {"door": {"colour": "red"}},
    ],
)
def test_fields_that_shape_a_trial_change_it(fields: dict[str, object]) -> None:
    assert House.model_validate(fields).digest() != House().digest()


@pytest.mark.parametrize(
    ("house", "other"),
    [
        (House(), House(pool=9, cache=Path("/absent"))),
        (
            House(judge=ChatConfig(model="m")),
            House(judge=ChatConfig(model="m", api_key_env="OTHER_KEY", deadline_s=5)),
        ),
        (House(weights={"a": 1, "b": 2}), House(weights={"b": 2, "a": 1})),
        (House(words=frozenset("ab")), House(words=frozenset("ba"))),
    ],
    ids=["operational fields", "those of its values", "the order of a mapping", "the order of a set"],
)
def test_what_shapes_no_trial_changes_nothing(house: House, other: House) -> None:
    assert house.digest() == other.digest()


def text_file(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    "house",
    [
        lambda path: House(data=path),
        lambda path: House(more=(path,)),
        lambda path: House(door=Door("red", path)),
    ],
)
def test_a_file_counts_by_what_it_holds_not_by_where_it_lies(house: Callable[[Path], House], tmp_path: Path) -> None:
    before = house(text_file(tmp_path, "a.txt", "one")).digest()
    assert house(text_file(tmp_path / "deep", "b.txt", "one")).digest() == before
    assert house(text_file(tmp_path, "a.txt", "two")).digest() != before


def test_a_folder_counts_by_the_names_and_contents_in_it(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        text_file(tmp_path / folder / "deep", "a.txt", "a")
        text_file(tmp_path / folder, "b.txt", "b")
    one, two = House(data=tmp_path / "one"), House(data=tmp_path / "two")
    before = one.digest()
    assert two.digest() == before
    text_file(tmp_path / "two", ".hidden", "x")
    text_file(tmp_path / "two" / "__pycache__", "x.pyc", "x")
    assert two.digest() == before, "what is hidden or compiled is no data"
    text_file(tmp_path / "two" / "deep", "a.txt", "changed")
    assert two.digest() != before
    (tmp_path / "one" / "b.txt").rename(tmp_path / "one" / "c.txt")
    assert one.digest() != before


def test_a_path_without_contents_is_refused_with_field_and_fix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^data: .*absent: no file or folder there; .* `operational`"):
        House(data=tmp_path / "absent").digest()


def test_a_field_that_has_no_json_form_is_refused_with_field_and_fix() -> None:
    class Odd(House):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        chooser: Callable[[], int] = int

    with pytest.raises(ValueError, match=r"^chooser: .* `operational`, or .* `digest` of its own"):
        Odd().digest()

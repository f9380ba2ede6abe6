"""Loads games: from the published folders (ALFWorld, MIT), listed by a split file or by path, or from our own pack."""

import hashlib
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import pydantic_core
from pydantic import TypeAdapter, ValidationError

from environments.alfworld.engine.s_expressions import GameError
from environments.alfworld.texts import SAMPLES, TASK_TYPES, GameTexts, OwnGame
from proctor.config.wording import first_problem
from proctor.published import other_records, records_hash
from proctor.types import Value

T = TypeVar("T")
OWN = "own"
"""The name of our own pack's split."""
PACK = SAMPLES / "games.json.xz"
GAME_FILE = "game.tw-pddl"
_UNSUPPORTED = ("movable", "Sliced")
"""Parts of the paths of games that are skipped, as in the published code: they move furniture, or need slices."""
_SOLVABLE = re.compile(rb'(?<!\\)"solvable"\s*:\s*(true|false)')
_SPLIT = TypeAdapter(dict[str, list[str]])
_PLANS = TypeAdapter(dict[str, tuple[str, ...]])
_PACK = TypeAdapter(tuple[OwnGame, ...])
LISTS: Mapping[str, str] = {
    "data/alfworld/dev.json": "2b7f277253f9f26be02dcc350244313ae5a839d8bb6766f929e703102c45eeac",
    "data/alfworld/standard.json": "185ea2ab1d717e03049189301f30e8e52b9c83d22436ea43d7e45abeb1800eb5",
}
"""The lists of AgentBench v0.2, by the hash of their record."""
GAMES: Mapping[int, str | None] = {20: "9cbda587e4db585954aaed6855ae15b71bfab09e9849d2dd0333a5cf8baa2573", 50: None}
"""The hash of the games' texts, by the number of games; None for those of standard.json, which were not at hand."""
RULES = "41c9baba98eadb4925f630ee635be93bf741de5aeeae9cae9fcf6dbfe19afd4c"
"""The hash of what all published games share: the domain, and the grammar without the task's sentence."""
_TASK = re.compile(r"Your task is to: [^\"\n]*")


class GameEntry(Value):
    """One playable game of a split."""

    sample: str
    """`<split>-<5-digit index>`; the index counts skipped games too."""
    path: str
    """As written in the split file, or relative to the data folder."""
    file: Path | None
    """None for a game of our own pack."""
    digest: str
    """Of the game's texts."""

    @property
    def folder(self) -> str:
        """The name of the task's folder, which begins with the task type."""
        parts = Path(self.path).parts
        return parts[-3] if len(parts) >= 3 else self.path


class Split(Value):
    """The playable games of a split, in order, and the number of skipped ones."""

    entries: tuple[GameEntry, ...]
    skipped: int
    """Games that are marked unsolvable, or whose tasks move furniture or need slices."""


def load(data: Path | None, split: Path | None, per_type: int | None) -> Split:
    """The games of a split file, of a folder without one, or of our own pack; of each type the first `per_type`.

    Raises ValueError naming file, field and fix. An unreadable game is listed, and fails when it is played.
    """
    if data is None:
        return Split(entries=tuple(_first(own_entries(), per_type)), skipped=0)
    listed: list[tuple[str, Path]]
    if not data.is_dir():
        raise ValueError(f"{data}: is not a folder; set `data` to the folder that the game paths are relative to")
    if split is None:
        name = data.resolve().name
        listed = [(str(path.relative_to(data)), path) for path in sorted(data.rglob(GAME_FILE))]
    else:
        name, listed = split.stem, [(path, data / path) for path in _read_split(split)]
    if not listed:
        raise ValueError(
            f"{split or data}: lists no {GAME_FILE}; give ALFWorld's folder json_2.1.1 or one of its splits"
        )
    found = [_entry(f"{name}-{index:05}", path, file) for index, (path, file) in enumerate(listed)]
    entries = [entry for entry in found if entry is not None]
    if not entries:
        raise ValueError(f"{split or data}: none of its {len(found)} games can be played; give a folder with others")
    return Split(entries=tuple(_first(entries, per_type)), skipped=len(found) - len(entries))


def texts(entry: GameEntry) -> GameTexts:
    """The content of a game. Raises GameError naming the file and what is wrong."""
    if entry.file is None:
        return own_game(entry.path).texts()
    return read(entry.file)


def read(file: Path) -> GameTexts:
    """The content of a game file. Raises GameError naming the file and what is wrong."""
    try:
        return GameTexts.model_validate_json(file.read_bytes())
    except OSError as error:
        raise GameError(f"{file}: can't be read: {error.strerror}; check `data` and the split file") from error
    except ValidationError as error:
        raise GameError(f"{file}: {first_problem(error)}; give an unchanged {GAME_FILE}") from error


def other_games(split: Path, entries: Sequence[GameEntry]) -> str | None:
    """Why games are not those of a published list; None where all that is known of them agrees."""
    if other := other_records(split, [json.loads(split.read_text(encoding="utf-8"))], LISTS):
        return other
    try:
        games = [(entry.path, texts(entry)) for entry in sorted(entries, key=lambda entry: entry.path)]
    except GameError as error:
        return str(error)
    if {records_hash(rules(game)) for _, game in games} != {RULES} or _differ(games):
        return f"{split.stem}: games that differ from those of ALFWorld's json_2.1.1; give these unchanged"
    return None


def rules(game: GameTexts) -> list[str]:
    """What a game shares with all others."""
    return [game.pddl_domain, _TASK.sub("", game.grammar)]


def plans(path: Path) -> Mapping[str, Sequence[str]]:
    """The plans of a file: JSON, from game paths to lists of commands. Raises ValueError naming file and fix."""
    return _json(path, _PLANS, "write an object from game paths to lists of commands")


@cache
def own_games() -> Sequence[OwnGame]:
    """The games that ship with Proctor, made by `python -m tools.datagen`."""
    return _PACK.validate_json(lzma.decompress(PACK.read_bytes()))


def own_game(path: str) -> OwnGame:
    """Our own game with this path."""
    return next(game for game in own_games() if game.path == path)


@cache
def own_entries() -> Sequence[GameEntry]:
    """The games that ship with Proctor, as those of the split `own`."""
    contents = ((game.path, game.texts().model_dump_json().encode()) for game in own_games())
    return [
        GameEntry(sample=f"{OWN}-{index:05}", path=path, file=None, digest=_digest(content))
        for index, (path, content) in enumerate(contents)
    ]


def _read_split(path: Path) -> list[str]:
    types = _json(path, _SPLIT, "write an object from task types to lists of game paths")
    return [game for games in types.values() for game in games]


def _json(path: Path, adapter: TypeAdapter[T], form: str) -> T:
    try:
        return adapter.validate_json(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error.strerror}; check the path") from error
    except ValidationError as error:
        raise ValueError(f"{path}: {first_problem(error)}; {form}") from error


def _entry(sample: str, path: str, file: Path) -> GameEntry | None:
    if any(word in path for word in _UNSUPPORTED):
        return None
    try:
        content = file.read_bytes()
    except OSError:
        content = b""
    if content and not _solvable(content):
        return None
    return GameEntry(sample=sample, path=path, file=file, digest=_digest(content))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _solvable(content: bytes) -> bool:
    """False where `solvable` is false or missing. A file without a JSON object passes here, and fails when played."""
    found = _SOLVABLE.search(content)
    if found:
        return found[1] == b"true"
    try:
        return not isinstance(pydantic_core.from_json(content), dict)
    except ValueError:
        return True


def _first(entries: Sequence[GameEntry], per_type: int | None) -> Iterator[GameEntry]:
    """Of each task type the first `per_type`; all where that is None."""
    if per_type is None:
        yield from entries
        return
    seen: Counter[str] = Counter()
    for entry in entries:
        kind = next((each for each in TASK_TYPES if entry.folder.startswith(each)), entry.folder)
        seen[kind] += 1
        if seen[kind] <= per_type:
            yield entry


def _differ(games: Sequence[tuple[str, GameTexts]]) -> bool:
    if len(games) not in GAMES:
        return True
    known, shape = GAMES[len(games)], {"pddl_problem", "grammar"}
    return known is not None and known != records_hash([path, game.model_dump(include=shape)] for path, game in games)

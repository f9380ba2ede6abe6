"""The map: tiles, walls, shortest ways, and places with their names (from the maze files of Park et al. 2023)."""

import difflib
import itertools
import json
import re
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path

import networkx as nx

from environments.stss.town.files import read_text

WALL = "32125"
UNREACHABLE = 0xFFFF
LAYERS = ("collision", "sector", "arena", "game_object")
SIGHT = 8
"""Distance in tiles within which people in the same arena perceive each other."""
WAYS = 4096
"""Limit of the ways that are kept."""


class TownMap:
    """A read-only map. A tile is its index, `y * width + x`; an address is `Sector[:arena[:object]]`."""

    def __init__(
        self, name: str, width: int, height: int, walls: Sequence[bool], addresses: Sequence[tuple[str, ...]]
    ) -> None:
        self.name = name
        self.width, self.height = width, height
        self.walls = tuple(walls)
        self.names = tuple(addresses)
        """Sector, arena and object of each tile, as far as it has them."""
        self._places = [(names[0] if names else "", names[1] if len(names) > 1 else "") for names in self.names]
        self._tiles: dict[str, list[int]] = {}
        for tile, path in enumerate(self.names):
            for depth in range(len(path)):
                self._tiles.setdefault(":".join(path[: depth + 1]), []).append(tile)
        self.sectors, self.arenas, self.objects = (
            tuple(sorted(address for address in self._tiles if address.count(":") == depth)) for depth in range(3)
        )
        """All addresses of each kind, in alphabetical order."""
        grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(height, width))
        grid.remove_nodes_from([tile for tile, wall in enumerate(walls) if wall])
        components = sorted(nx.connected_components(grid), key=min)
        most = max(components, key=lambda component: sum(len(self.names[tile]) > 1 for tile in component))
        self._graph = grid.subgraph(most).copy()
        self._neighbours = {tile: sorted(self._graph[tile]) for tile in self._graph}
        self.full = cache(self._longest)
        """The address extended to its object with the most tiles; unchanged if there is none in it."""
        self._steps = cache(self._steps_to)
        self.path = lru_cache(maxsize=WAYS)(self._way)  # people walk the same ways again
        """The tiles of a shortest way from a tile to an address without the first; empty if the tile is in it."""

    @property
    def reachable(self) -> frozenset[int]:
        """The tiles that people can walk on: the 4-connected component with the most tiles in an arena."""
        return frozenset(self._graph)

    def __contains__(self, address: str) -> bool:
        return address in self._tiles

    def tiles(self, address: str) -> Sequence[int]:
        """The tiles of an address, including walls and unreachable ones."""
        return self._tiles[address]

    def _longest(self, address: str) -> str:
        inside = [longer for longer in self.objects if longer.startswith(f"{address}:")]
        return max(inside, key=lambda longer: (len(self._tiles[longer]), longer), default=address)

    def place(self, tile: int) -> tuple[str, str]:
        """Sector and arena of a tile, each empty if it has none."""
        return self._places[tile]

    def point(self, tile: int) -> tuple[int, int]:
        """x and y of a tile."""
        return tile % self.width, tile // self.width

    def sees(self, tile: int, other: int) -> bool:
        """Whether two people on these tiles perceive each other."""
        place = self.place(tile)
        (x, y), (u, v) = self.point(tile), self.point(other)
        return bool(place[1]) and place == self.place(other) and (x - u) ** 2 + (y - v) ** 2 <= SIGHT**2

    def distance(self, tile: int, address: str) -> int:
        """Steps from a reachable tile to the nearest tile of an address."""
        return self._steps(address)[tile]

    def _way(self, tile: int, address: str) -> Sequence[int]:
        distances, way = self._steps(address), list[int]()
        for steps in range(distances[tile], 0, -1):
            for near in self._neighbours[tile]:
                if distances[near] < steps:
                    break
            tile = near
            way.append(tile)
        return tuple(way)

    def _steps_to(self, address: str) -> "array[int]":
        """Steps from every tile to an address."""
        distances = array("H", [UNREACHABLE]) * (self.width * self.height)
        for steps, layer in enumerate(nx.bfs_layers(self._graph, self._targets(address))):
            for tile in layer:
                distances[tile] = steps
        return distances

    def _targets(self, address: str) -> list[int]:
        """The reachable tiles of an address; if it has none, those of the arena or sector around it."""
        found = [tile for tile in self._tiles[address] if tile in self._graph]
        return found or self._targets(address.rpartition(":")[0])


def load(folder: Path) -> TownMap:
    """The map of a folder with `maze` and `special_blocks`. Raises ValueError with file and fix."""
    meta = folder / "maze_meta_info.json"
    text = read_text(meta)
    try:
        size = json.loads(text)
        width, height = int(size["maze_width"]), int(size["maze_height"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{meta}: {error!r}; it must give maze_width and maze_height") from error
    if width < 1 or height < 1:
        raise ValueError(f"{meta}: maze_width, maze_height: {width} by {height}; give the tiles of the map")
    collision, *codes = (_layer(folder / "maze" / f"{layer}_maze.csv", width * height) for layer in LAYERS)
    blocks = [_blocks(folder / "special_blocks" / f"{layer}_blocks.csv") for layer in LAYERS[1:]]
    world = next(iter(_blocks(folder / "special_blocks" / "world_blocks.csv").values()))
    names = [_address(tile, codes, blocks, folder) for tile in range(width * height)]
    if all(code == WALL for code in collision):
        raise ValueError(f"{folder}: maze: collision_maze.csv: every tile is a wall; write 0 for free tiles")
    built = TownMap(world, width, height, [code == WALL for code in collision], names)
    for sector in built.sectors:
        if not any(tile in built.reachable for tile in built.tiles(sector)):
            raise ValueError(f"{folder}: no way leads to {sector!r}; leave a gap in its walls")
    return built


def _address(
    tile: int, codes: Sequence[list[str]], blocks: Sequence[Mapping[str, str]], folder: Path
) -> tuple[str, ...]:
    names: list[str] = []
    for layer, of_layer, known in zip(LAYERS[1:], codes, blocks, strict=True):
        code = of_layer[tile]
        if code == "0":
            break
        if code not in known:
            raise ValueError(f"{folder}: {layer}_maze.csv: code {code!r} is not in {layer}_blocks.csv; add it there")
        names.append(known[code])
    return tuple(names)


def _layer(path: Path, tiles: int) -> list[str]:
    codes = [code.strip() for code in read_text(path).replace("\n", ",").strip(",\n ").split(",")]
    if len(codes) != tiles:
        raise ValueError(f"{path}: holds {len(codes)} codes, the map has {tiles} tiles; give one code for each tile")
    return codes


def _blocks(path: Path) -> dict[str, str]:
    """Last name of a line, by the code of the line."""
    lines = [line.split(",") for line in read_text(path).splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{path}: is empty; give lines of a code and its names")
    return {fields[0].strip(): fields[-1].strip() for fields in lines}


NICKNAMES: Mapping[str, str] = {
    "Hobbs Coffee": "Hobbs Cafe",
    "Willow Market and Pharmacy": "The Willows Market and Pharmacy",
    "Willows Market": "The Willows Market and Pharmacy",
    "the market": "The Willows Market and Pharmacy",
    "the pharmacy": "The Willows Market and Pharmacy",
    "the dorm": "Dorm for Oak Hill College",
    "the college": "Oak Hill College",
}
"""Sector of the published map by another common name."""
CLOSE = 0.87
"""Minimum similarity, from 0 to 1, for a misspelt name to match."""


class Places:
    """The names of a map's places."""

    def __init__(self, world: TownMap, homes: Mapping[str, str] | None = None) -> None:
        """`homes`: the address of everybody's home, by full name."""
        self._world = world
        self.homes: Mapping[str, str] = homes or {}

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """Address by name in lower case; the first address of several with the same name."""
        world, names = self._world, dict[str, str]()
        for address in (*world.sectors, *world.arenas, *world.objects):
            names[address.lower()] = address
        for sector in world.sectors:
            names.setdefault(re.sub(r"^the ", "", sector.lower()), sector)
            names.setdefault(sector.lower().split()[-1], sector)
        arenas = [address.rpartition(":")[2].lower() for address in world.arenas]
        for address, arena in zip(world.arenas, arenas, strict=True):
            if arenas.count(arena) == 1:
                names.setdefault(arena, address)
        for person, home in self.homes.items():
            for owner, thing in itertools.product((person, person.split()[0]), ("house", "home", "place", "apartment")):
                names.setdefault(f"{owner.lower()}'s {thing}", home.partition(":")[0])
        for nickname, sector in NICKNAMES.items():
            if sector in world:
                names.setdefault(nickname.lower(), sector)
        return {name: address for name, address in names.items() if name not in _VAGUE}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest: defaultdict[str, list[str]] = defaultdict(list)
        for name in sorted(self._names, key=len, reverse=True):
            longest[name[0]].append(re.escape(name[1:]))
        by_first = (f"{re.escape(first)}(?:{'|'.join(rests)})" for first, rests in longest.items())
        return re.compile(rf"(?<!\w)(?:{'|'.join(by_first)})(?!\w)", re.IGNORECASE)

    def named(self, text: str) -> str | None:
        """The address of a name; case and the world's name do not matter. None if there is none."""
        name = self._plain(text)
        return self._names.get(name) or self._names.get(name.removeprefix("the "))

    def find(self, text: str) -> str | None:
        """As `named`; small misspellings do not matter either."""
        if (address := self.named(text)) is not None:
            return address
        close = difflib.get_close_matches(self._plain(text), self._names, n=1, cutoff=CLOSE)
        return self._names[close[0]] if close else None

    def _plain(self, text: str) -> str:
        name = " ".join(text.replace("’", "'").strip().strip(".").lower().split())
        return name.removeprefix(f"{self._world.name.lower()}:")

    def mentions(self, text: str) -> list[str]:
        """The addresses of the places named in a text, in order."""
        return [self._names[name.lower()] for name in self._pattern.findall(text.replace("’", "'"))]


_VAGUE = frozenset({"house", "apartment", "space", "bathroom", "store", "room", "college:", "garden"})
"""Last words of names that do not identify a place."""

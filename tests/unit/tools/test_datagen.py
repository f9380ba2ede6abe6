"""The shipped samples are those that the generators make."""

import gzip
import lzma
from pathlib import Path

import pytest

from tests.support import ROOT
from tools.datagen.__main__ import main

UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}


def unpacked(folder: Path) -> dict[str, bytes]:
    return {path.name: UNPACK[path.suffix](path.read_bytes()) for path in folder.iterdir() if path.suffix in UNPACK}


@pytest.mark.thorough
def test_the_generators_make_the_shipped_samples(tmp_path: Path) -> None:
    main(tmp_path)
    for world, count in (("alfworld", 1), ("mind2web", 21), ("webshop", 3)):
        made = unpacked(tmp_path / world)
        assert len(made) == count
        assert made == unpacked(ROOT / "environments" / world / "samples"), world

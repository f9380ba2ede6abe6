"""Differences between a container's own layer and those of its image; what is read of a file is limited."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proctor.sandbox import docker_files
from proctor.sandbox.base import Change
from proctor.sandbox.docker_files import changed_files, layers


@pytest.fixture
def stack(tmp_path: Path) -> tuple[Path, list[Path]]:
    """Two image layers and an empty layer of the container's own."""
    for name in ("own", "top", "base"):
        (tmp_path / name / "usr/bin").mkdir(parents=True)
    (tmp_path / "base/usr/bin/wc").write_text("count")
    (tmp_path / "base/usr/bin/tree").write_text("old")
    (tmp_path / "top/usr/bin/tree").write_text("new")
    (tmp_path / "top/usr/bin/awk").symlink_to("mawk")
    return tmp_path / "own", [tmp_path / "top", tmp_path / "base"]


def copy_up(stack: tuple[Path, list[Path]], path: str, content: str) -> Path:
    """Write a file with the modification time of the image's file."""
    target, source = stack[0] / path, next(layer / path for layer in stack[1] if (layer / path).exists())
    target.write_text(content)
    os.utime(target, ns=(0, source.stat().st_mtime_ns))
    return target


def test_an_untouched_container_has_no_changes(stack: tuple[Path, list[Path]]) -> None:
    assert changed_files(*stack) == {}


def test_content_counts_and_not_time_or_place(stack: tuple[Path, list[Path]]) -> None:
    copy_up(stack, "usr/bin/wc", "forge")
    copy_up(stack, "usr/bin/tree", "new")
    assert changed_files(*stack) == {"/usr/bin/wc": Change.CHANGED}


def test_an_older_layer_s_content_is_a_change(stack: tuple[Path, list[Path]]) -> None:
    copy_up(stack, "usr/bin/tree", "old")
    assert changed_files(*stack) == {"/usr/bin/tree": Change.CHANGED}


def test_modes_links_and_new_files_count(stack: tuple[Path, list[Path]]) -> None:
    copy_up(stack, "usr/bin/wc", "count").chmod(0o700)
    (stack[0] / "usr/bin/awk").symlink_to("evil")
    (stack[0] / "usr/bin/new\udcff").write_text("")
    assert changed_files(*stack) == {
        "/usr/bin/wc": Change.CHANGED,
        "/usr/bin/awk": Change.CHANGED,
        "/usr/bin/new\N{REPLACEMENT CHARACTER}": Change.ADDED,
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_whiteout_is_a_deletion_and_hides_what_lies_below(stack: tuple[Path, list[Path]]) -> None:
    os.mknod(stack[0] / "usr/bin/wc", 0o20000, os.makedev(0, 0))
    (stack[1][0] / "usr/bin/tree").unlink()
    os.mknod(stack[1][0] / "usr/bin/tree", 0o20000, os.makedev(0, 0))
    (stack[0] / "usr/bin/tree").write_text("old")
    assert changed_files(*stack) == {"/usr/bin/wc": Change.DELETED, "/usr/bin/tree": Change.ADDED}


def test_a_pipe_or_a_link_out_of_the_layer_is_not_opened(stack: tuple[Path, list[Path]]) -> None:
    os.mkfifo(stack[0] / "usr/bin/wc")
    (stack[0] / "etc").symlink_to("/etc")
    assert changed_files(*stack) == {"/usr/bin/wc": Change.CHANGED, "/etc": Change.ADDED}


def test_layers_are_known_where_they_can_be_read(stack: tuple[Path, list[Path]], tmp_path: Path) -> None:
    own, (top, base) = stack
    said = {"Name": "overlay2", "Data": {"UpperDir": str(own), "LowerDir": f"{top}:{base}"}}
    assert layers({"GraphDriver": said}) == (own, [top, base])
    assert layers({"GraphDriver": {**said, "Data": {"UpperDir": str(tmp_path / "elsewhere"), "LowerDir": ""}}}) is None
    assert layers({"GraphDriver": {**said, "Name": "zfs"}}) is None
    assert layers({"GraphDriver": None}) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sets the attribute")
def test_what_a_folder_made_anew_hides_is_deleted_at_any_depth(stack: tuple[Path, list[Path]]) -> None:
    own, image = stack
    os.setxattr(own / "usr", "trusted.overlay.opaque", b"y")
    (own / "usr/bin/awk").mkdir()
    (own / "usr/new").mkdir()
    deleted = dict.fromkeys(("/usr/bin/wc", "/usr/bin/tree"), Change.DELETED)
    assert changed_files(own, image) == {"/usr/bin/awk": Change.FOLDER, **deleted}


def test_a_file_that_grows_while_it_is_read_is_given_up() -> None:
    read = itertools.count()

    def archive(container: str, path: str) -> tuple[Iterator[bytes], None]:
        return (bytes(1 << 20) for _ in read), None

    client: Any = SimpleNamespace(api=SimpleNamespace(get_archive=archive))
    assert docker_files._content(client, "c", "/usr/bin/wc") == "over 67108864 bytes"
    assert next(read) == 65

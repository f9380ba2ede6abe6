"""The bytes read of a container's file are limited, even if the container replaces it meanwhile."""

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from proctor.sandbox import docker_files


def test_a_file_that_grows_while_it_is_read_is_given_up() -> None:
    read = itertools.count()

    def archive(container: str, path: str) -> tuple[Iterator[bytes], None]:
        return (bytes(1 << 20) for _ in read), None

    client: Any = SimpleNamespace(api=SimpleNamespace(get_archive=archive))
    assert docker_files._content(client, "c", "/usr/bin/wc") == "over 67108864 bytes"
    assert next(read) == 65

"""What a host on a Ray node must say of itself."""

import inspect

import pytest


@pytest.mark.ray
def test_every_kind_of_host_says_what_it_runs() -> None:
    from eval_client.ray.host import ClientHost, NodeHost, ServerHost

    assert [inspect.isabstract(kind) for kind in (NodeHost, ServerHost, ClientHost)] == [True, False, False]

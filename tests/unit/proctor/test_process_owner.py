"""Which process owns a sandbox, and whether it has ended."""

import subprocess
import sys

import pytest

from proctor.process_owner import Owner


@pytest.mark.parametrize(
    ("owner", "dead"),
    [
        (Owner.current(), False),
        (Owner.current().model_copy(update={"started": "1"}), True),
        (Owner(machine="elsewhere", pid=1, started="0"), False),
    ],
    ids=["this process", "an earlier one with the same pid", "one of another machine, of which nothing is known"],
)
def test_an_owner_is_dead_where_that_is_certain(owner: Owner, dead: bool) -> None:
    assert owner.is_dead() is dead


def test_a_label_names_its_owner_and_others_nobody() -> None:
    assert Owner.from_label(Owner.current().label()) == Owner.current()
    assert [Owner.from_label(label) for label in ("", "machine pid start")] == [None, None]


def test_an_ended_process_is_dead() -> None:
    code = "from proctor.process_owner import Owner; print(Owner.current().label())"
    label = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    owner = Owner.from_label(label)
    assert owner is not None
    assert owner.is_dead()

"""Which process owns a sandbox, and whether it has ended."""

import os
import subprocess
import sys

from proctor.process_owner import Owner


def test_this_process_is_its_own_owner_and_alive() -> None:
    owner = Owner.current()
    assert (owner.pid, owner.is_dead()) == (os.getpid(), False)


def test_a_label_names_its_owner() -> None:
    assert Owner.from_label(Owner.current().label()) == Owner.current()


def test_other_labels_name_nobody() -> None:
    assert Owner.from_label("") is None
    assert Owner.from_label("machine pid start") is None


def test_an_ended_process_is_dead() -> None:
    code = "from proctor.process_owner import Owner; print(Owner.current().label())"
    label = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    owner = Owner.from_label(label)
    assert owner is not None
    assert owner.is_dead()


def test_a_later_process_with_the_same_pid_is_another_owner() -> None:
    assert Owner.current().model_copy(update={"started": "1"}).is_dead()


def test_nothing_is_known_of_another_machine() -> None:
    assert not Owner(machine="elsewhere", pid=1, started="0").is_dead()

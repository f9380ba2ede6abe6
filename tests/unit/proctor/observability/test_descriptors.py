"""What is a lack of descriptors, and how many trials so many descriptors are enough for."""

import errno
import sqlite3
import subprocess
import sys

import pytest
import sqlalchemy as sa

from proctor.environment import Agent, EnvironmentFault
from proctor.observability.descriptors import descriptors_for, lacks_descriptors, trials_for
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, Observation
from tests.conformance.test_check_catches import Sound


def caused(by: BaseException) -> BaseException:
    try:
        try:
            raise by
        except type(by) as error:
            raise EnvironmentFault("the engine failed") from error
    except EnvironmentFault as fault:
        return fault


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS])
def test_an_error_of_the_system_is_one_through_its_causes(number: int) -> None:
    assert lacks_descriptors(OSError(number, "no more"))
    assert lacks_descriptors(caused(OSError(number, "no more")))
    assert lacks_descriptors(sa.exc.OperationalError("", {}, OSError(number, "no more")))


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
        sqlite3.OperationalError("unable to open database file"),
        OSError("Temporary failure in name resolution"),
        ValueError("Too many open files"),
    ],
)
def test_what_others_say_is_none_while_files_can_be_opened(error: Exception) -> None:
    assert not lacks_descriptors(error)


def test_what_sqlite_and_look_ups_say_is_one_where_no_file_can_be_opened() -> None:
    asked = (
        "import resource, sqlite3; from proctor.observability.descriptors import lacks_descriptors\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "print(all(map(lacks_descriptors, [sqlite3.OperationalError('unable to open database file'), "
        "OSError('Temporary failure in name resolution')])))"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


class Nobody(Agent):
    async def act(self, observation: Observation) -> Action:
        raise OSError(errno.EMFILE, "Too many open files")


async def test_a_session_that_lacks_them_waits_as_for_a_service_that_is_away() -> None:
    finish: Finish = await play_to_finish(Sound(), "first", Nobody())
    assert finish.is_away


@pytest.mark.parametrize("trials", [1, 100, 300, 2000])
def test_what_is_asked_for_is_enough(trials: int) -> None:
    assert trials_for(descriptors_for(trials)) >= trials


@pytest.mark.parametrize(("limit", "trials"), [(16, 4), (128, 32), (512, 128), (1024, 298)])
def test_what_fits_leaves_descriptors_for_the_rest(limit: int, trials: int) -> None:
    assert trials_for(limit) == trials

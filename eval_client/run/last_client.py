"""Which client played a run last on this machine: one that was killed here is succeeded at once, not once it is silent.

Task servers know clients by ids that processes draw at random. This user's state folder, which no store's author can
write, holds the last one of each run with its process; a client on another machine may still play, so that one's
silence is waited for.
"""

import hashlib
import logging
import os
from pathlib import Path

from eval_client.store.pools.base import PoolError
from eval_client.store.pools.files import make_private, state_folder
from proctor.process_owner import Owner
from task_server.wire.messages import Sender

log = logging.getLogger(__name__)


def succeed(sender: Sender) -> str:
    """Note that a client, a process of this machine, plays the run from now on; the one before it, if that has ended.

    Empty where there was none, where it may still play, and where the state folder can't be used.
    """
    path = _path(sender)
    before, _, label = _read(path).partition(" ")
    owner = Owner.from_label(label)
    try:
        make_private(path.parent.parent)
        make_private(path.parent)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(f"{sender.client} {Owner.current().label()}")
        fresh.replace(path)
    except (OSError, PoolError) as error:
        log.info("a resume after a kill will wait until this client is silent: %s can't be written: %s", path, error)
    return before if owner is not None and owner.is_dead() else ""


def _path(sender: Sender) -> Path:
    """One file for each run; the parts of a plan have one id."""
    run = hashlib.blake2b(f"{sender.run}\0{sender.name}".encode(), digest_size=16).hexdigest()
    return state_folder() / "clients" / run


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, ValueError):
        return ""

"""What this user's state folder knows of runs, which no store's author can write: their plans, and their last clients.

A store's plan names commands to run, URLs to send keys to, and files to read. So this user's list of the runs that were
started here holds a fingerprint of each one's plan, and a resume acts on a plan of this machine.

Task servers know clients by ids that processes draw at random. The last one of each run is kept with its process: one
that was killed here is succeeded at once; one on another machine may still play, so that one's silence is waited for.
"""

import hashlib
import json
import logging
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eval_client.plan.filters import narrowed
from eval_client.plan.load import load_plan, with_overrides
from eval_client.plan.plan import Plan
from eval_client.store.pools import PoolError, make_private, state_folder
from eval_client.store.records import Manifest
from proctor.config.yaml import FileError
from proctor.process_owner import Owner
from task_server.wire.messages import Sender

log = logging.getLogger(__name__)

ACTS = {
    *("command", "on_end", "controller", "token_env", "base_url", "endpoint", "headers", "query", "proxy", "tls"),
    *("api_key_env", "api_key_file", "api_key_command", "replicas_file", "environment", "data", "parameters"),
    "function",
}
"""Fields of a plan by which something is run, asked, sent or read."""
MOST_LINES, MOST_CHARS = 30, 200
PYTHON, NO_FILE = "(Python)", "-"


class AtHand(NamedTuple):
    """A plan to go on with."""

    plan: Plan
    path: str
    overrides: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What the user should know of it."""


def _fingerprint(run: str, manifest: Manifest) -> str:
    """A hash of a run's plan as its store holds it, with the file that it came from and its `--set` options."""
    text = json.dumps([run, manifest.plan, manifest.plan_path, list(manifest.overrides)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def list_run(run: str, manifest: Manifest) -> None:
    """Write into this user's list that the run is played here by the manifest's plan. A failure is only said."""
    hashes = f"{_fingerprint(run, manifest)} {_file_hash(Path(manifest.plan_path))}"
    path = _list()
    try:
        make_private(path.parent)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, f"{hashes} {json.dumps([run, manifest.plan_path])}\n".encode())
        finally:
            os.close(file)
    except (OSError, PoolError) as error:
        log.warning("a resume of this run will ask for its plan's file, since %s can't be written: %s", path, error)


def is_listed(run: str, manifest: Manifest) -> bool:
    """Whether the run was started or resumed by this user with the plan that its store holds now."""
    return _listed(_fingerprint(run, manifest)) is not None


def plan_at_hand(
    run: str,
    folder: Path,
    manifest: Manifest,
    given: Callable[[Sequence[str]], Plan] | Path | None,
    overrides: Sequence[str],
    *,
    trust_stored: bool = False,
) -> AtHand:
    """The plan to go on with: the one given, else what this user's list vouches for, else the stored one if trusted.

    `given` is a plan's file, or makes a plan with overrides. Raises FileError where no plan is at hand.
    """
    text_hash = _listed(_fingerprint(run, manifest))
    vouched = text_hash is not None
    stored = manifest.overrides if vouched or trust_stored else ()
    texts = (*stored, *overrides)
    notes: tuple[str, ...] = ()
    if manifest.overrides and not stored:
        options = " ".join(f"--set {json.dumps(text)}" for text in manifest.overrides)
        notes = (f"the store's options are not taken up, since they may be anybody's; give them again: {options}",)
    if callable(given):
        return AtHand(given(texts), PYTHON, texts, notes)
    path = given or Path(manifest.plan_path)
    if given is None and not vouched and not trust_stored:
        raise FileError(_refusal(run, manifest))
    if given is not None or (vouched and path.is_file()):
        if given is None and _file_hash(path) != text_hash:
            notes = (_changed(path, folder),)
        return AtHand(load_plan(path, texts, lambda plan: narrowed(plan, manifest.filters)), str(path), texts, notes)
    recorded = manifest.read_plan()
    return AtHand(with_overrides(recorded, overrides), manifest.plan_path, texts, notes)


def _changed(path: Path, folder: Path) -> str:
    """What to say of a plan's file that has changed. Raises FileError where somebody else may have changed it."""
    found = path.stat()
    inside = folder.resolve() in path.resolve().parents
    if inside or found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise FileError(
            f"{path}: has changed since the run was started, and others may write there; check it, and "
            f"give it by --plan {path}"
        )
    return f"{path} has changed since the run was started; the run goes on with it as it is now"


def _refusal(run: str, manifest: Manifest) -> str:
    lines = list(_acts(manifest.plan))
    more = [f"and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    told = "".join(f"\n  {line}" for line in (*lines[:MOST_LINES], *more))
    return (
        f"run {run!r} was not started here with the plan that its store holds, which others may have written. "
        f"Name your own plan's file by --plan FILE (in Python: plan=...), or allow by --trust-stored-plan what the "
        f"stored plan says:{told}"
    )


def _acts(value: object, where: str = "", *, acts: bool = False) -> Iterator[str]:
    """`field: value`, in printable ASCII, for what a stored plan would have us run, ask, send or read."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _acts(each, f"{where}.{key}" if where else str(key), acts=acts or key in ACTS)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for number, each in enumerate(value):
            name = each.get("name", number) if isinstance(each, dict) else number
            yield from _acts(each, f"{where}.{name}", acts=acts)
    elif acts and value not in (None, "", []):
        yield f"{where.encode('unicode_escape').decode()}: {json.dumps(value)}"[:MOST_CHARS]


def _list() -> Path:
    return state_folder() / "started-runs"


def _listed(wanted: str) -> str | None:
    """The hash of the plan's file in the newest entry with this fingerprint; None without an entry."""
    found = None
    try:
        lines = _list().read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(f"{wanted} "):
            found = line.split(" ")[1]
    return found


def _file_hash(path: Path) -> str:
    """A hash of a plan's file; `-` where there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else NO_FILE
    except OSError:
        return NO_FILE


def succeed(sender: Sender) -> str:
    """Note that a client, a process of this machine, plays the run from now on; the one before it, if that has ended.

    Empty where there was none, where it may still play, and where the state folder can't be used.
    """
    path = _client_file(sender)
    before, _, label = _client_before(path).partition(" ")
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


def _client_file(sender: Sender) -> Path:
    """One file for each run; the parts of a plan have one id."""
    run = hashlib.blake2b(f"{sender.run}\0{sender.name}".encode(), digest_size=16).hexdigest()
    return state_folder() / "clients" / run


def _client_before(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, ValueError):
        return ""

"""Checks of a run to be resumed: plan and data are unchanged, and its store is complete."""

from collections.abc import Mapping

from eval_client.doctor.finding import Finding, fail, ok
from eval_client.doctor.run_checks import Check, in_thread
from eval_client.plan.plan import Plan, differences
from eval_client.store.connection import StoreError
from eval_client.store.damage import damage, losses
from eval_client.store.records import Manifest
from eval_client.store.store import Store


def run_findings(run: str, manifest: Manifest, plan: Plan, digests: Mapping[str, str | None]) -> list[Finding]:
    """Findings that prevent a resume. `digests`: task -> its present digest, None or absent where unknown."""
    found = []
    if changed := differences(manifest.identity, plan.identity()):
        found.append(fail("run-plan-changed", f"run {run}: {'; '.join(changed)}"))
    for name, record in manifest.tasks.items():
        now = digests.get(name)
        if now is not None and now != record.digest:
            what = f"run {run}: task {name} has digest {now[:12]}, it began with {record.digest[:12]}"
            found.append(fail("run-data-changed", what))
    return found or [ok("run", f"run {run} can be resumed: plan and data are as they were")]


def store_check(store: Store) -> Check:
    """The check of a run's store."""
    return Check(f"store of run {store.run}", in_thread(store_findings, store))


def store_findings(store: Store) -> list[Finding]:
    """Whether the run's store is complete and undamaged; reads all of it."""
    found = [*damage(store), *([] if (lost := losses(store)) is None else [lost])]
    damaged = [fail("run-damaged", f"run {store.run}: {each}") for each in found]
    return damaged or [ok("run", f"run {store.run}: its store is whole")]


def unreadable(error: StoreError) -> Finding:
    """The finding for a run that can't be read."""
    return fail("run-unreadable", str(error))

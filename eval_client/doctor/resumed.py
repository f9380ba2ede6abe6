"""A run that is to be resumed: whether the plan and its data are still the same."""

from collections.abc import Mapping

from eval_client.doctor.finding import Finding, fail, ok
from eval_client.plan import Plan, differences
from eval_client.store.connection import StoreError
from eval_client.store.records import Manifest


def run_findings(run: str, manifest: Manifest, plan: Plan, digests: Mapping[str, str | None]) -> list[Finding]:
    """What stands against resuming; `digests` are the tasks' of now, None or absent where not known."""
    found = []
    if changed := differences(manifest.identity, plan.identity()):
        found.append(fail("run-plan-changed", f"run {run}: {'; '.join(changed)}"))
    for name, record in manifest.tasks.items():
        now = digests.get(name)
        if now is not None and now != record.digest:
            what = f"run {run}: task {name} has digest {now[:12]}, it began with {record.digest[:12]}"
            found.append(fail("run-data-changed", what))
    return found or [ok("run", f"run {run} can be resumed: plan and data are as they were")]


def unreadable(error: StoreError) -> Finding:
    """The run can't be read at all."""
    return fail("run-unreadable", str(error))

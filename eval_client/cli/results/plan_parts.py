"""Finds the runs that a report, comparison or export reads; the parts of a plan are read as one run."""

from collections.abc import Sequence
from pathlib import Path

from eval_client.store.connection import StoreError
from eval_client.store.runs import find_parts, find_run
from eval_client.store.store import Store


def find_results(names: Sequence[str], store: str | None, output: Path, *, texts: bool = False) -> list[Store]:
    """The runs of these names, each once: parts of a plan as one run, with what was said if `texts`.

    A name may be that of a plan's parts together. Raises StoreError, DatabaseError.
    """
    found = [each for name in names for each in find_parts(name, store, output) or _run_or_parts(name, store, output)]
    if any(each.manifest().part is not None for each in found):
        from eval_client.report.task_environment import one_run  # 60 ms of CPU, for the parts of a plan alone

        return [one_run(found, texts=texts)]
    named: dict[str, Store] = {}
    for each in found:
        if named.setdefault(each.run, each).engine.url != each.engine.url:
            raise StoreError(f"{each.run}: another run of that name is given too; rename the folder of one")
    return list(named.values())


def _run_or_parts(name: str, store: str | None, output: Path) -> list[Store]:
    """A run; where `latest` is a part, all parts that are there."""
    found, _ = find_run(name, store, output)
    if name != "latest" or (part := found.manifest().part) is None:
        return [found]
    return find_parts(part.plan, store, output)

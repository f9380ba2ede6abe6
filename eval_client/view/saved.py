"""Saves a run's overview or a comparison as one file: no script, no network, the same bytes for the same store."""

import base64
import hashlib
import re
import shlex
from collections.abc import Sequence
from functools import cache

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from eval_client.report.compare.compare import compared, run_letters
from eval_client.report.compare.measure import Settings
from eval_client.report.compare.values import Comparison, Comparisons, letters_tables
from eval_client.report.configuration_tables import COMPARISON_METHODS, METHODS, run_facts, run_head
from eval_client.report.papers import papers
from eval_client.report.plots.svg import nowhere
from eval_client.report.report import report
from eval_client.report.score_matrix import Facts, matrix, not_comparable_notes, sample_tables
from eval_client.report.scrub import WARNING, publishable_comparison, publishable_report
from eval_client.report.task_environment import answer_reader
from eval_client.report.trial_markdown import Showing, trial_markdown
from eval_client.store.store import Store
from eval_client.store.trials.rows import MAX_SIZE, TrialRow, rows_of
from eval_client.store.trials.scores import trial_facts
from eval_client.store.trials.trajectory import read_trajectory
from eval_client.view.pages.compare import compared_title, shown_comparisons
from eval_client.view.pages.overview import MOST_PAIRS, run_details
from eval_client.view.rendering import assets, from_markdown, template_environment
from eval_client.view.viewer import Viewer

CHANGEABLE = ("alpha", "power", "pass_at", "seed")
"""Settings of a comparison that an option changes, called as they are."""


def report_file(viewer: Viewer, request: Request) -> Response:
    """The overview as the one file that `proctor report --html` writes. Raises StoreError, DatabaseError."""
    store = viewer.open(request)
    text = viewer.kept.get(("report file", store.run), lambda: report_page(store))
    name = re.sub(r"[^A-Za-z0-9._-]", "_", store.run)
    headers = {"Content-Disposition": f'attachment; filename="{name}.html"'}
    return Response(text.encode("utf-8", "backslashreplace"), headers=headers, media_type="text/html")


def report_page(store: Store, *, title: str | None = None, samples: bool = False, trials: Sequence[int] = ()) -> str:
    """The overview of a run, finished or not; by default without a sample's id, a prompt or an answer.

    `samples` adds scores by sample, with what was asked and answered where that may be given away; `trials` whole
    trials by their ids. Raises StoreError, DatabaseError.
    """
    manifest, facts = store.manifest(), trial_facts(store)
    plan = manifest.read_plan()
    made = publishable_report(report(store), facts)
    letters, (found, left_out) = run_letters(store, made.pairs), compared(store)
    large = len(made.pairs) > MOST_PAIRS
    told = [_trial(store, each) for each in trials]
    head = [(name.capitalize(), text) for name, text in run_head(manifest) if name != "data"]  # its files' names
    return _saved(
        "overview.html",
        title or f"{store.run}: results",
        run=store.run,
        kept=lambda _name, caller: caller(),
        notes=made.notes,
        report=made,
        matrix=matrix(made.pairs, letters),
        letters=letters,
        details=None if large else run_details(manifest, made, facts, nowhere),
        large_notes=not_comparable_notes(made) if large else [],
        facts=[*head, *run_facts(manifest, plan, store.created_at(), store.state())],
        left_out=left_out,
        compared=shown_comparisons(found, publishable_comparison),
        papers=papers(store, made, large=large),
        samples=sample_tables(facts, _words(store, facts)) if samples else [],
        trials=told,
        warnings=[WARNING, *sorted({str(trial["licence"]) for trial in told if trial["licence"]})]
        if told or samples
        else [],
        methods=METHODS,
        version=manifest.version,
        command=_report_command(store.run, title, samples=samples, trials=trials),
    )


def comparison_page(found: Comparison | Comparisons, settings: Settings) -> str:
    """The comparison: figures alone, without samples, prompts, answers, addresses and paths."""
    shown = shown_comparisons(found, publishable_comparison)
    first = shown[0].found
    return _saved(
        "compare.html",
        compared_title(shown),
        run=" and ".join(dict.fromkeys(side.run for each in shown for side in (each.found.a, each.found.b))),
        facts=_comparison_facts([each.found for each in shown], settings),
        found=shown,
        letters=letters_tables(found) if isinstance(found, Comparisons) else [],
        unlike=list(dict.fromkeys(text for each in shown for text in each.found.alike)),
        gates=[line for each in shown for line in each.found.gates],
        methods=COMPARISON_METHODS,
        version=first.a.version,
        command=_comparison_command(found, settings),
    )


def _words(store: Store, facts: Facts) -> dict[int, TrialRow]:
    """The trials of the first epochs whose words may be published, by their ids."""
    ids = [trial.id for trials in facts.values() for trial in trials if trial.epoch == 0]
    rows = (row for start in range(0, len(ids), MAX_SIZE) for row in rows_of(store, ids[start : start + MAX_SIZE]))
    return {row.id: row for row in rows if row.redistributable and (row.asked or row.expected or row.answered)}


@cache
def _style() -> tuple[str, str]:
    """The viewer's style, and its digest for the policy of a file."""
    style = assets()["view.css"].content.decode()
    return style, base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


def _saved(template: str, title: str, **values: object) -> str:
    style, digest = _style()
    known = {"layout": "saved.html", "saved": True, "style": Markup(style), "style_hash": digest}  # our own file
    return template_environment().get_template(template).render(**known, title=title, **values)


def _trial(store: Store, number: int) -> dict[str, object]:
    """A whole trial in a file."""
    trial = read_trajectory(store, number)
    read = answer_reader(store.manifest(), trial.task)
    licence = "" if trial.finish is None else str(trial.finish.detail.get("licence", ""))
    shown = from_markdown(trial_markdown(trial, read, Showing(public=True)))
    return {"id": number, "shown": shown, "licence": licence}


def _report_command(run: str, title: str | None, *, samples: bool, trials: Sequence[int]) -> str:
    parts = ["proctor", "report", run, "--html", "report.html"]
    parts += ["--title", title] if title else []
    parts += ["--samples"] if samples else []
    parts += ["--trials", ",".join(map(str, trials))] if trials else []
    return shlex.join(parts)


def _comparison_facts(each: Sequence[Comparison], settings: Settings) -> list[tuple[str, str]]:
    first = each[0]
    named = [(name, f"{side.agent} ({side.run})") for name, side in (("A", first.a), ("B", first.b))]
    sides = named if len(each) == 1 else []
    across = [("Although these differ", ", ".join(settings.across))] if settings.across else []
    versions = dict.fromkeys(side.version for one in each for side in (one.a, one.b))
    return [*sides, ("Proctor", ", ".join(versions)), ("Alpha", f"{first.alpha:g}"), *across]


def _comparison_command(found: Comparison | Comparisons, settings: Settings) -> str:
    """What makes this file again, where the runs are found by their names."""
    parts = ["proctor", "compare"]
    if isinstance(found, Comparison):
        one = found.tasks[0] if len(found.tasks) == 1 else None
        for side, task in ((found.a, one and one.task), (found.b, one and one.task_b)):
            parts.append(f"{side.run}:{side.agent}" + (f"@{task}" if task else ""))
        tasks = settings.tasks if one is None else ()
    else:
        parts.append(found.comparisons[0].a.run)
        parts += [] if found.letters else ["--against", found.comparisons[0].b.agent]
        tasks = settings.tasks
    parts += [text for task in tasks for text in ("--task", task)]
    parts += [text for kind in settings.across for text in ("--across", kind)]
    for name in CHANGEABLE:
        if (value := getattr(settings, name)) != getattr(Settings(), name):
            parts += [f"--{name.replace('_', '-')}", f"{value:g}"]
    return shlex.join([*parts, "--html", "comparison.html"])

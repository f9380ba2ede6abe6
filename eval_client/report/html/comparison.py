"""Writes a comparison as one HTML file, by the same rules as a run's report."""

import shlex
from collections.abc import Sequence

from eval_client.report.compare.measure import Settings
from eval_client.report.compare.values import ComparedAgent, Comparison, Comparisons
from eval_client.report.html import figures
from eval_client.report.html.blocks import Block, PlotBlock, Section, TableBlock, TextBlock
from eval_client.report.html.compared import comparison_table, letters_tables
from eval_client.report.html.methods import COMPARISON_METHODS
from eval_client.report.html.rendering import rendered
from eval_client.report.html.scrub import publishable

CHANGEABLE = ("alpha", "power", "pass_at", "bootstrap", "seed")
"""Settings that an option changes, called as they are."""


def comparison_page(found: Comparison | Comparisons, settings: Settings) -> str:
    """The file: figures alone, without samples, prompts, answers, addresses and paths."""
    each = [found] if isinstance(found, Comparison) else found.comparisons
    letters = letters_tables(found) if isinstance(found, Comparisons) else []
    first = each[0]
    title = f"{first.a.agent} against {first.b.agent}" if len(each) == 1 else f"{first.a.run}: agents compared"
    return rendered(
        "comparison.html",
        title=title,
        run=" and ".join(dict.fromkeys(side.run for one in each for side in (one.a, one.b))),
        facts=_facts(each, settings),
        warnings=_warnings(each),
        sections=(
            *([Section("letters", "Letters", tuple(TableBlock(table) for table in letters))] if letters else []),
            Section("comparisons", "Comparisons", _blocks(each)),
            Section("methods", "How these numbers were made", (TextBlock(COMPARISON_METHODS),)),
        ),
        version=first.a.version,
        command=_command(found, settings),
    )


def _facts(each: Sequence[Comparison], settings: Settings) -> list[tuple[str, str]]:
    first = each[0]
    sides = [("A", _side(first.a)), ("B", _side(first.b))] if len(each) == 1 else []
    across = [("Although these differ", ", ".join(settings.across))] if settings.across else []
    versions = dict.fromkeys(side.version for one in each for side in (one.a, one.b))
    return [*sides, ("Proctor", ", ".join(versions)), ("Alpha", f"{first.alpha:g}"), *across]


def _side(side: ComparedAgent) -> str:
    return f"{side.agent} ({side.run})"


def _warnings(each: Sequence[Comparison]) -> list[str]:
    unlike = dict.fromkeys(text for one in each for text in one.alike)
    gates = [f"FAILED {line}" for one in each for line in one.gates]
    return [publishable(text) for text in ([f"NOT ALIKE: {'; '.join(unlike)}"] if unlike else []) + gates]


def _blocks(each: Sequence[Comparison]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for place, one in enumerate(each):
        blocks += [TableBlock(comparison_table(one)), PlotBlock(figures.differences(one), noted=place == 0)]
    return tuple(blocks)


def _command(found: Comparison | Comparisons, settings: Settings) -> str:
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

"""Makes the gallery and the pictures of the docs anew: `make gallery`. Plays the demo, and the small model of
`make real-model` beside the random agent, and writes their reports, a conversation and a comparison of each, and the
tables of papers over the demo, with the date and the versions."""

import datetime
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from playwright.sync_api import ViewportSize

from tests.browser import chromium
from tests.real_model.test_real_model import TEXT, Llama

DOCS = Path(__file__).parents[1] / "docs"
GALLERY, PICTURES = DOCS / "gallery", DOCS / "how-to" / "pictures"
SIZE, SCALE = ViewportSize(width=1440, height=819), 0.62
CLI = [sys.executable, "-m", "eval_client.cli.main"]
PLAN = """\
name: smollm2
endpoints:
  - {{name: llama.cpp, base_url: {url}/v1, concurrency: 2, deadline_s: 600, patience_s: 600}}
agents:
  - {{name: SmolLM2-135M, endpoint: llama.cpp, model: smollm2, sampling: {{temperature: 0, max_tokens: 40}}}}
  - {{name: random, builtin: random}}
tasks:
{tasks}
limits: {{trial: {{turns: 2}}}}
"""
TASK = "  - {{name: {0}, environment: {0}, parameters: {{{1}}}, samples: {{limit: {2}}}}}"
SAMPLES = {"db": 6, "simulbench": 4}
"""Of other worlds one: a turn of theirs is a thousand tokens and more, for which the model takes half a minute."""
INDEX = """\
# Gallery

What a run leaves behind, made by `make gallery` on {date} with Proctor {proctor}, Python {python} and, for the model,
llama.cpp's server (xllamacpp {server}) with SmolLM2-135M-Instruct. So small a model solves nothing.

| | the demo | a small real model beside the random agent |
|---|---|---|
| report (`proctor report`) | [the demo](demo-report.html) | [every world](model-report.html) |
| conversation (`proctor show`) | [a low trial](demo-conversation.md) | [a question to a table](model-conversation.md) |
| comparison (`proctor compare`) | [naive, reference](demo-comparison.html) | [model, random](model-comparison.html) |
| papers' tables (`proctor report --form`) | [AgentBench and STSS](papers.md) | |
"""


def main() -> None:
    """Write all pages; nothing is kept of the runs."""
    GALLERY.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told = proctor(folder, "demo", "-q")
        lowest = re.search(r"proctor show \S+ (\d+)", told)
        assert lowest is not None
        proctor(folder, "report", "--title", "The demo", "--html", str(GALLERY / "demo-report.html"))
        page("demo-conversation.md", "", proctor(folder, "show", "latest", lowest[1], "--markdown"))
        proctor(folder, "compare", ":naive", ":reference", "--html", str(GALLERY / "demo-comparison.html"))
        tables = [proctor(folder, "report", "--form", form, "--format", "markdown") for form in ("agentbench", "stss")]
        page("papers.md", "Papers' tables over the demo", "\n".join(tables))
        photograph_run(folder, lowest[1])
        play_model(folder)
        title = "A small model on every world"
        proctor(folder, "report", "smollm2", "--title", title, "--html", str(GALLERY / "model-report.html"))
        page(
            "model-conversation.md",
            "",
            proctor(folder, "show", "smollm2", "SmolLM2-135M@db/select-00000", "--markdown"),
        )
        comparison = "smollm2:random", "smollm2:SmolLM2-135M", "--html", str(GALLERY / "model-comparison.html")
        proctor(folder, "compare", *comparison)
    python = ".".join(map(str, sys.version_info[:3]))
    server = subprocess.run(
        [os.environ["PROCTOR_REAL_MODEL"], "-c", "from importlib.metadata import version; print(version('xllamacpp'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    today = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    (GALLERY / "index.md").write_text(
        INDEX.format(date=today, proctor=version("proctor"), python=python, server=server), encoding="utf-8"
    )


def play_model(folder: Path) -> None:
    """One or a few samples of every world."""
    llama = Llama(folder / "llama.log")
    llama.start()
    tasks = "\n".join(TASK.format(world, given, SAMPLES.get(world, 1)) for world, given in TEXT.items())
    try:
        (folder / "plan.yaml").write_text(PLAN.format(url=llama.url, tasks=tasks), encoding="utf-8")
        proctor(folder, "run", "plan.yaml", "--name", "smollm2", "-q")
    finally:
        llama.kill()


def page(name: str, title: str, text: str) -> None:
    """A page of the site."""
    (GALLERY / name).write_text(f"# {title}\n\n{text}" if title else text, encoding="utf-8")


def proctor(folder: Path, *arguments: str) -> str:
    """What a command prints; the program ends where it fails."""
    command, out = [*CLI, *arguments], subprocess.PIPE
    done = subprocess.run(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout)
    return done.stdout


def photograph_run(folder: Path, trial: str) -> None:
    """Its report, its overview and a trial."""
    photograph(
        (GALLERY / "demo-report.html").as_uri(), PICTURES / "report.png", ViewportSize(width=1330, height=640), 1.0
    )
    command = [*CLI, "view", "--no-open"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as view:
        try:
            assert view.stdout is not None
            url = next(found[0] for line in view.stdout if (found := re.search(r"http://[\w.:]+", line)))
            (run,) = (each.name for each in (folder / "runs").iterdir())
            photograph(f"{url}/runs/{run}", PICTURES / "overview.png")
            photograph(f"{url}/runs/{run}/trials/{trial}", PICTURES / "trial.png")
        finally:
            view.terminate()


def photograph(address: str, file: Path, size: ViewportSize = SIZE, scale: float = SCALE) -> None:
    """A picture of a page."""
    with chromium() as browser:
        shown = browser.new_page(viewport=size, device_scale_factor=scale)
        shown.goto(address)
        shown.screenshot(path=str(file))


if __name__ == "__main__":
    main()

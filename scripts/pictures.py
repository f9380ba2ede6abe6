"""Takes the pictures of the docs anew, from a run of the demo: `python -m scripts.pictures` in the checkout."""

import os
import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from playwright.sync_api import ViewportSize
from rich.console import Console
from rich.text import Text

from tests.browser import chromium

PICTURES = Path(__file__).parents[1] / "docs" / "how-to" / "pictures"
COLUMNS, SIZE, SCALE = 100, ViewportSize(width=1440, height=819), 0.62
CLI = [sys.executable, "-m", "eval_client.cli.main"]


def main() -> None:
    """Play the demo, and draw its end, its overview and its lowest trial."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shown = subprocess.run(
            [*CLI, "demo", "-q"],
            cwd=folder,
            env={**os.environ, "COLUMNS": str(COLUMNS)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        ).stdout
        _draw("$ proctor demo\n" + shown[shown.index("task ") :], PICTURES / "demo.svg")
        command = [*CLI, "view", "--no-open"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as view:
            try:
                assert view.stdout is not None
                url = next(found[0] for line in view.stdout if (found := re.search(r"http://[\w.:]+", line)))
                (run,) = (each.name for each in (folder / "runs").iterdir())
                lowest = re.search(r"proctor show \S+ (\d+)", shown)
                assert lowest is not None
                _photograph(f"{url}/runs/{run}", PICTURES / "overview.png")
                _photograph(f"{url}/runs/{run}/trials/{lowest[1]}", PICTURES / "trial.png")
            finally:
                view.terminate()


def _draw(text: str, file: Path) -> None:
    """Draw a terminal with this text, in the reader's own font: rich's would be loaded from another site."""
    console = Console(record=True, width=COLUMNS, file=StringIO())
    console.print(Text.from_ansi(text))
    drawn = console.export_svg(title="proctor demo")
    file.write_text(re.sub(r"@font-face \{[^}]*\}", "", drawn), encoding="utf-8")


def _photograph(address: str, file: Path) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport=SIZE, device_scale_factor=SCALE)
        page.goto(address)
        page.screenshot(path=str(file))


if __name__ == "__main__":
    main()

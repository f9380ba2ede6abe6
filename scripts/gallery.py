"""Takes the pictures of the docs anew, from a run of the demo: `python -m scripts.pictures` in the checkout."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import ViewportSize

from tests.browser import chromium

PICTURES = Path(__file__).parents[1] / "docs" / "how-to" / "pictures"
SIZE, SCALE = ViewportSize(width=1440, height=819), 0.62
CLI = [sys.executable, "-m", "eval_client.cli.main"]


def main() -> None:
    """Play the demo, and photograph its report, its overview and its lowest trial."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shown = subprocess.run(
            [*CLI, "demo", "-q"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        ).stdout
        report = folder / "report.html"
        subprocess.run([*CLI, "report", "--title", "The demo", "--html", report], cwd=folder, check=True)
        _photograph(report.as_uri(), PICTURES / "report.png", ViewportSize(width=1330, height=640), 1.0)
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


def _photograph(address: str, file: Path, size: ViewportSize = SIZE, scale: float = SCALE) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport=size, device_scale_factor=scale)
        page.goto(address)
        page.screenshot(path=str(file))


if __name__ == "__main__":
    main()

"""The pages' module and templates are small and checked; what they show of a run under way is accessible."""

import re
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from eval_client.view import rendering
from tests.database_servers import program
from tests.e2e.gates import Gate
from tests.e2e.view.conftest import Begin, viewer
from tests.e2e.view.test_live import SPARED, begun
from tests.pace import until

MODULE = rendering.HERE / "assets" / "view.js"
STRICT = ("--allowJs", "--checkJs", "--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom,dom.iterable")
OF_THESE_ALONE = ("--skipLibCheck", "--moduleDetection", "force")
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
FOUND = "() => axe.run().then(found => found.violations.filter(each => ['serious', 'critical'].includes(each.impact)))"


def errors_in(*modules: Path) -> list[str]:
    """Each error, in one line or several; it begins with its file's name."""
    tsc = program("tsc")
    assert tsc is not None, "no tsc; `make test` as root installs it"
    command = [tsc, *STRICT, *OF_THESE_ALONE, *map(str, modules)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return re.split(r"\n(?! )", (done.stdout + done.stderr).strip())


@pytest.mark.browser
def test_the_module_is_short_and_its_types_are_right(tmp_path: Path) -> None:
    text = MODULE.read_text(encoding="utf-8")
    assert text.startswith("// @ts-check\n")
    assert len(text.splitlines()) <= 400
    wrong = tmp_path / "wrong.js"
    wrong.write_text(text.replace("step(1)", "step('1')"), encoding="utf-8")
    (error,) = errors_in(MODULE, wrong)
    assert "wrong.js(" in error
    assert "not assignable to parameter of type 'number'" in error


def test_the_module_writes_no_markup_and_runs_no_text() -> None:
    text = MODULE.read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|\.style\b", text)


def test_templates_hold_no_arithmetic() -> None:
    for path in sorted((rendering.HERE / "templates").glob("*.html")):
        for expression in re.findall(r"{[{%](.*?)[%}]}", path.read_text(encoding="utf-8"), re.DOTALL):
            bare = re.sub(r"\*\*\w+|\"[^\"]*\"|'[^']*'|\[[^\]]*\]|^-|-$", "", expression)
            assert not re.search(r"[+*/%]|\s-\s|//", bare), (path.name, expression)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_run_under_way_and_the_list_of_keys_are_accessible(
    tmp_path: Path, run: Begin, way: Gate, browser: Browser, scheme: str
) -> None:
    way.shut(SPARED)
    run()
    until(lambda: begun(tmp_path))
    context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
    with viewer(tmp_path) as address:
        page = context.new_page()
        page.goto(f"{address}/runs/slow")
        expect(page.locator("#live section")).to_have_count(1)
        assert violations(page) == []
        page.keyboard.press("?")
        assert violations(page) == []
    context.close()


def violations(page: Page) -> list[object]:
    page.evaluate(AXE)
    found: list[object] = page.evaluate(FOUND)
    return found

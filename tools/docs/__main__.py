"""`python -m tools.docs` writes the references that are made from the code, and names the links that lead nowhere."""

import sys

from tools.docs.links import all_pages, broken_links
from tools.docs.pages import FOLDER, pages

for name, text in pages().items():
    (FOLDER / name).write_text(text, encoding="utf-8")
sys.exit("\n".join(broken for page in all_pages() for broken in broken_links(page)) or None)

"""The parts of a page around its form: header, search box, stories, side bar, footer."""

import random

from tools.datagen.mind2web import words
from tools.datagen.mind2web.element import Element, el


def page(site: str, density: int, seed: str, form: Element) -> Element:
    """A whole page. `density`, from 1, sets the amount of content around the form. Equal arguments give equal pages."""
    dice = random.Random(seed)
    main = el("main", form, el("section", *(_story(dice) for _ in range(2 * density)), class_="stories"))
    aside = el("aside", *(_links(dice, 5) for _ in range(density)), role="complementary")
    body = el(
        "body", _header(site, density, dice), el("div", main, aside, class_="columns"), _footer(site, density, dice)
    )
    return el("html", body)


def _header(site: str, density: int, dice: random.Random) -> Element:
    logo = el("a", el("img", alt=f"{site} logo"), title=f"{site} home", class_="logo")
    box = el("input", type="search", name="q", placeholder=f"Search {site}", aria_label="Search")
    search = el("form", box, el("button", el("svg", class_="icon-search"), type="submit", aria_label="Search"))
    menus = [el("li", el("button", topic, type="button"), role="presentation") for topic in _topics(dice, 3 + density)]
    return el("header", logo, search, el("nav", el("ul", *menus), role="navigation", aria_label="Main"), role="banner")


def _story(dice: random.Random) -> Element:
    topic = dice.choice(words.TOPICS)
    text = f"{dice.choice(words.SUBJECTS)} {dice.choice(words.VERBS)} {dice.choice(words.OBJECTS)}."
    more = el("a", el("span", "Read more"), aria_label=f"Read more: {topic}")
    media = el("div", el("img", alt=f"{topic} in {dice.choice(words.TOWNS)}"), class_="media")
    return el("article", media, el("div", el("h3", topic), el("p", text), more, class_="copy"))


def _links(dice: random.Random, count: int) -> Element:
    links = [el("li", el("a", topic, role="link"), class_="item") for topic in _topics(dice, count)]
    return el("div", el("h4", dice.choice(words.TOPICS)), el("ul", *links, role="list"), class_="box")


def _footer(site: str, density: int, dice: random.Random) -> Element:
    columns = [_links(dice, 6) for _ in range(2 + density)]
    hidden = el("input", type="hidden", name="token", value="none")
    letter = el("input", type="email", name="letter", placeholder="Your e-mail")
    join = el("button", "Subscribe", type="button")
    return el("footer", *columns, el("div", letter, join, hidden), el("p", f"© {site}"), role="contentinfo")


def _topics(dice: random.Random, count: int) -> list[str]:
    return dice.sample(words.TOPICS, min(count, len(words.TOPICS)))

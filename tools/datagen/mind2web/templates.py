"""Five kinds of sites: the fields of their forms, and tasks on them."""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tools.datagen.mind2web import layout, words
from tools.datagen.mind2web.element import Element, el
from tools.datagen.mind2web.widgets import (
    Cards,
    Combobox,
    Date,
    FormButton,
    Menu,
    Select,
    State,
    TextField,
    Tick,
    Widget,
    WidgetMove,
)

MOST_MOVES = 10
FEWEST_MOVES = 3


class SiteKind(NamedTuple):
    """A kind of site. `fields` draws the widgets of a form; the last is the button that submits it."""

    name: str
    domain: str
    subdomain: str
    purpose: str
    fields: Callable[[random.Random], tuple[Widget, ...]]


class Story(NamedTuple):
    """A task on a site, and the moves that solve it."""

    kind: SiteKind
    site: str
    task: str
    moves: tuple[WidgetMove, ...]
    fields: tuple[Widget, ...]
    density: int
    """Amount of content around the form, from 4 to 32."""

    def page(self, state: State) -> Element:
        """The page in a state of its widgets."""
        form = el("form", el("h1", self.kind.purpose), *(field.draw(state) for field in self.fields), class_="main")
        return layout.page(self.site, self.density, f"{self.site} {self.task}", form)


def story(kind: SiteKind, dice: random.Random) -> Story:
    """A task on a site of a kind: some fields to fill in, from top to bottom, then the button."""
    site, fields = dice.choice(words.SITES[kind.name]), kind.fields(dice)
    *optional, button = fields
    room = min(dice.randint(FEWEST_MOVES, MOST_MOVES) for _ in range(2))
    used: set[str] = set()
    for field in dice.sample(optional, len(optional)):
        if len(field.moves) + len(button.moves) <= room:
            used.add(field.key)
            room -= len(field.moves)
    chosen = [field for field in fields if field.key in used or field is button]
    wishes = ", ".join(field.wish for field in chosen)
    moves = tuple(move for field in chosen for move in field.moves)
    return Story(kind, site, f"{kind.purpose} on {site}: {wishes}.", moves, fields, round(4 * 8 ** dice.random()))


def _travel(dice: random.Random) -> tuple[Widget, ...]:
    return (
        _combobox(dice, "from", "Leaving from", words.TOWNS),
        _combobox(dice, "to", "Going to", words.TOWNS),
        _date(dice, "depart", "Departure"),
        _select(dice, "class", "Cabin", ("Economy", "Comfort", "Business", "First")),
        _select(dice, "adults", "Travellers", ("1 adult", "2 adults", "3 adults", "4 adults", "Family")),
        TextField("name", "Passenger name", dice.choice(words.PEOPLE)),
        TextField("code", "Promotion code", f"SPRING{dice.randint(10, 99)}"),
        _tick(dice, "extras", "Extras", ("Direct only", "Extra legroom", "Checked bag", "Seat by the window")),
        FormButton("search", "Search flights"),
    )


def _shop(dice: random.Random) -> tuple[Widget, ...]:
    goods = dice.sample(words.GOODS, dice.randint(6, 14))
    offers = tuple((name, f"{dice.randint(9, 180)}.{dice.randint(0, 9)}0 crowns") for name in goods)
    return (
        _combobox(dice, "brand", "Brand", words.EMPLOYERS),
        _combobox(dice, "shop", "Pick up in", words.TOWNS),
        Menu("category", "All departments", words.TOPICS[:8], dice.randrange(8)),
        _select(dice, "sort", "Sort by", ("Relevance", "Price, lowest first", "Newest", "Best rated")),
        _select(dice, "count", "Quantity", ("1", "2", "3", "4", "5", "6")),
        TextField("least", "Lowest price", str(dice.randint(5, 60))),
        TextField("gift", "Gift note", f"For {dice.choice(words.PEOPLE)}"),
        _tick(dice, "colour", "Colour", ("Moss green", "Slate grey", "Rust red", "Sand")),
        Cards("offers", "Add to basket", offers, dice.randrange(len(offers))),
        FormButton("checkout", "Go to checkout"),
    )


def _table(dice: random.Random) -> tuple[Widget, ...]:
    return (
        _combobox(dice, "town", "Town", words.TOWNS),
        _combobox(dice, "kitchen", "Restaurant", words.KITCHENS),
        _date(dice, "day", "Day"),
        _select(dice, "time", "Time", ("18:00", "18:30", "19:00", "19:30", "20:00", "20:30", "21:00")),
        _select(dice, "party", "Party", ("1 guest", "2 guests", "3 guests", "4 guests", "6 guests", "8 guests")),
        TextField("name", "Name of the booking", dice.choice(words.PEOPLE)),
        TextField("phone", "Phone", f"555 0{dice.randint(100, 999)}", "tel"),
        _tick(dice, "cuisine", "Cuisine", words.CUISINES),
        FormButton("reserve", "Reserve a table"),
    )


def _jobs(dice: random.Random) -> tuple[Widget, ...]:
    return (
        _combobox(dice, "trade", "Job title", words.TRADES),
        _combobox(dice, "place", "Location", words.TOWNS),
        Menu("sector", "Browse employers", words.EMPLOYERS, dice.randrange(len(words.EMPLOYERS))),
        _select(dice, "posted", "Posted", ("Any time", "Last day", "Last week", "Last month")),
        _select(dice, "level", "Experience", ("Any level", "Trainee", "Skilled", "Senior", "Lead")),
        TextField("pay", "Yearly pay from", str(1000 * dice.randint(18, 60))),
        TextField("alert", "Name of the alert", f"{dice.choice(words.TRADES)} alert"),
        _tick(dice, "hours", "Hours", ("Full time", "Part time", "Night shift", "From home", "Seasonal")),
        FormButton("find", "Find jobs"),
    )


def _office(dice: random.Random) -> tuple[Widget, ...]:
    return (
        _combobox(dice, "permit", "Kind of permit", words.PERMITS),
        _combobox(dice, "district", "District", words.TOWNS),
        _date(dice, "start", "Valid from"),
        _select(dice, "years", "Term", ("One year", "Two years", "Five years", "For life")),
        _select(dice, "title", "Form of address", ("None given", "Ms", "Mr", "Mx", "Dr")),
        TextField("holder", "Name of the holder", dice.choice(words.PEOPLE)),
        TextField("street", "Street and number", f"{dice.randint(1, 99)} {dice.choice(words.TOWNS)} Road"),
        _tick(dice, "notice", "Send notices by", ("Letter", "E-mail", "Text message")),
        FormButton("apply", "Submit application"),
    )


def _combobox(dice: random.Random, key: str, label: str, options: Sequence[str]) -> Combobox:
    offered = tuple(dice.sample(options, 5))
    return Combobox(key, label, offered, dice.randrange(5))


def _date(dice: random.Random, key: str, label: str) -> Date:
    return Date(key, label, dice.choice(words.MONTHS), dice.randint(1, 30))


def _select(dice: random.Random, key: str, label: str, options: tuple[str, ...]) -> Select:
    return Select(key, label, options, dice.randrange(1, len(options)))


def _tick(dice: random.Random, key: str, label: str, options: tuple[str, ...]) -> Tick:
    return Tick(key, label, options, dice.randrange(len(options)))


KINDS = (
    SiteKind("travel", "Travel", "Airlines", "Book a flight", _travel),
    SiteKind("shop", "Shopping", "Household", "Buy something", _shop),
    SiteKind("table", "Travel", "Restaurant", "Book a table", _table),
    SiteKind("jobs", "Service", "Jobs", "Look for work", _jobs),
    SiteKind("office", "Service", "Government", "Apply for a permit", _office),
)

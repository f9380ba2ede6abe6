"""Widgets of a form: fields, menus, dates and lists. Each draws itself in a state and lists the moves to fill it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from environments.mind2web.data.records import Op
from tools.datagen.mind2web.element import Element, el

OPEN = "open"
"""State key whose value is the key of the widget with an open list."""
State = Mapping[str, str]


class WidgetMove(NamedTuple):
    """One step of a task."""

    target: str
    """Key of the element that is acted on."""
    op: Op
    value: str
    description: str
    """The element in words, as `[kind]  label`."""
    changes: dict[str, str]
    """State values after the move that differ from those before."""

    @property
    def repr(self) -> str:
        """The move in words, in Mind2Web's form."""
        return f"{self.description} -> {self.op}" + (f": {self.value}" if self.value else "")


@dataclass(frozen=True)
class Widget(ABC):
    """Part of a form that is acted on; `wish` is its part of the task's text."""

    key: str
    label: str

    @property
    @abstractmethod
    def wish(self) -> str: ...

    @property
    @abstractmethod
    def moves(self) -> Sequence[WidgetMove]: ...

    @abstractmethod
    def draw(self, state: State) -> Element: ...


@dataclass(frozen=True)
class TextField(Widget):
    """A field to type into."""

    value: str
    kind: str = "text"

    @property
    def wish(self) -> str:
        return f"{self.label.lower()} {self.value}"

    @property
    def moves(self) -> Sequence[WidgetMove]:
        return [WidgetMove(self.key, "TYPE", self.value, f"[textbox]  {self.label}", {self.key: self.value, OPEN: ""})]

    def draw(self, state: State) -> Element:
        typed = state.get(self.key)
        box = el("input", key=self.key, type=self.kind, name=self.key, placeholder=self.label, input_value=typed)
        return el("div", el("label", self.label), el("div", box, class_="field"), class_="row")


@dataclass(frozen=True)
class OptionWidget(Widget):
    """A widget with options, of which the task wants one: `wanted` is its number, from 0."""

    wording: ClassVar[str] = "{label} {option}"

    options: tuple[str, ...]
    wanted: int

    @property
    def option(self) -> str:
        """The wanted option."""
        return self.options[self.wanted]

    @property
    def wish(self) -> str:
        return self.wording.format(label=self.label.lower(), option=self.option)

    @property
    def target(self) -> str:
        """The key of the wanted option's element."""
        return f"{self.key}.{self.wanted}"


@dataclass(frozen=True)
class Combobox(OptionWidget):
    """A field that opens a list of options when text is typed."""

    @property
    def moves(self) -> Sequence[WidgetMove]:
        typed = self.option.split()[0]
        return [
            WidgetMove(self.key, "TYPE", typed, f"[combobox]  {self.label}", {self.key: typed, OPEN: self.key}),
            WidgetMove(self.target, "CLICK", "", f"[option]  {self.option}", {self.key: self.option, OPEN: ""}),
        ]

    def draw(self, state: State) -> Element:
        opened = state.get(OPEN) == self.key
        box = el(
            "input",
            key=self.key,
            role="combobox",
            type="text",
            aria_label=self.label,
            placeholder=f"Enter {self.label.lower()}",
            input_value=state.get(self.key),
        )
        offers = [
            el("li", el("span", option), key=f"{self.key}.{at}", role="option", aria_label=option)
            for at, option in enumerate(self.options)
        ]
        return el("div", el("span", self.label), box, el("ul", *offers, role="listbox") if opened else None)


@dataclass(frozen=True)
class Date(Widget):
    """A field that opens the calendar of a month to pick a day."""

    month: str
    day: int

    @property
    def wish(self) -> str:
        return f"{self.label.lower()} {self.month} {self.day}"

    @property
    def moves(self) -> Sequence[WidgetMove]:
        day = f"{self.month} {self.day}"
        return [
            WidgetMove(self.key, "CLICK", "", f"[textbox]  {self.label}", {OPEN: self.key}),
            WidgetMove(f"{self.key}.{self.day}", "CLICK", "", f"[gridcell]  {day}", {self.key: day, OPEN: ""}),
        ]

    def draw(self, state: State) -> Element:
        picked = state.get(self.key)
        box = el("input", key=self.key, type="text", title=self.label, placeholder="Pick a date", input_value=picked)
        return el("div", el("label", self.label), box, self._month() if state.get(OPEN) == self.key else None)

    def _month(self) -> Element:
        cells = [
            el("td", el("span", str(day)), key=f"{self.key}.{day}", role="gridcell", aria_label=f"{self.month} {day}")
            for day in range(1, 31)
        ]
        weeks = [el("tr", *cells[at : at + 7]) for at in range(0, 30, 7)]
        turns = [el("button", name, type="button", aria_label=f"{name} month") for name in ("Previous", "Next")]
        head = el("div", turns[0], el("h4", self.month), turns[1])
        return el("div", head, el("table", *weeks), role="dialog", aria_label="Calendar")


@dataclass(frozen=True)
class Select(OptionWidget):
    """A field with a fixed list of values."""

    @property
    def moves(self) -> Sequence[WidgetMove]:
        changes = {self.key: self.option, OPEN: ""}
        return [WidgetMove(self.key, "SELECT", self.option, f"[combobox]  {self.label}", changes)]

    def draw(self, state: State) -> Element:
        chosen = state.get(self.key, self.options[0])
        offers = [
            el("option", option, value=str(at), option_selected="true" if option == chosen else None)
            for at, option in enumerate(self.options)
        ]
        return el("div", el("label", self.label), el("select", *offers, key=self.key, name=self.label))


@dataclass(frozen=True)
class Tick(OptionWidget):
    """A group of check boxes; the task wants one of them ticked."""

    wording = "{option} ticked under {label}"

    @property
    def moves(self) -> Sequence[WidgetMove]:
        changes = {self.target: "true", OPEN: ""}
        return [WidgetMove(self.target, "CLICK", "", f"[checkbox]  {self.option}", changes)]

    def draw(self, state: State) -> Element:
        boxes = [
            el(
                "li",
                el(
                    "input",
                    key=f"{self.key}.{at}",
                    type="checkbox",
                    aria_label=option,
                    input_checked=state.get(f"{self.key}.{at}"),
                ),
                el("label", option),
            )
            for at, option in enumerate(self.options)
        ]
        return el("fieldset", el("h3", self.label), el("ul", *boxes))


@dataclass(frozen=True)
class Menu(OptionWidget):
    """A menu that opens; the task wants one of its entries."""

    wording = "{option} from the menu {label}"

    @property
    def moves(self) -> Sequence[WidgetMove]:
        return [
            WidgetMove(self.key, "CLICK", "", f"[button]  {self.label}", {OPEN: self.key}),
            WidgetMove(self.target, "CLICK", "", f"[menuitem]  {self.option}", {self.key: self.option, OPEN: ""}),
        ]

    def draw(self, state: State) -> Element:
        opened = state.get(OPEN) == self.key
        entries = [
            el("li", el("a", option, key=f"{self.key}.{at}", title=option), role="none")
            for at, option in enumerate(self.options)
        ]
        switch = el("button", el("span", self.label), key=self.key, type="button", aria_label=self.label)
        chosen = state.get(self.key)
        return el(
            "div", switch, el("p", chosen) if chosen else None, el("ul", *entries, role="menu") if opened else None
        )


@dataclass(frozen=True)
class Cards(Widget):
    """A list of offers with a button each; the task wants the button of one."""

    offers: tuple[tuple[str, str], ...]
    """Name and price."""
    wanted: int

    @property
    def wish(self) -> str:
        return f"{self.label.lower()} {self.offers[self.wanted][0]}"

    @property
    def moves(self) -> Sequence[WidgetMove]:
        description = f"[button]  {self.label} {self.offers[self.wanted][0]}"
        return [
            WidgetMove(f"{self.key}.{self.wanted}", "CLICK", "", description, {self.key: str(self.wanted), OPEN: ""})
        ]

    def draw(self, state: State) -> Element:
        cards = [
            el(
                "li",
                el("img", alt=name, class_="thumb"),
                el("h3", el("a", name, title=name)),
                el("span", price),
                el("p", "Chosen") if state.get(self.key) == str(at) else None,
                el(
                    "button",
                    el("span", self.label),
                    key=f"{self.key}.{at}",
                    type="button",
                    aria_label=f"{self.label} {name}",
                ),
            )
            for at, (name, price) in enumerate(self.offers)
        ]
        return el("section", el("ul", *cards), aria_label="Offers")


@dataclass(frozen=True)
class FormButton(Widget):
    """The button that submits the form."""

    @property
    def wish(self) -> str:
        return f"then {self.label.lower()}"

    @property
    def moves(self) -> Sequence[WidgetMove]:
        return [WidgetMove(self.key, "CLICK", "", f"[button]  {self.label}", {OPEN: ""})]

    def draw(self, state: State) -> Element:
        return el("button", el("svg", class_="icon-arrow large"), el("span", self.label), key=self.key, type="submit")

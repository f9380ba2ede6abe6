"""Reduces option values to colour words (WebShop's published table)."""

import re

_TABLE = """
         alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel
    camo     caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry
    cream crystal     dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green
    grey heather indigo ivory     ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot
    midnight mint mocha multicolor     mushroom mustard natural navy nude olive orange peach pewter pink plum purple
    rainbow red rose royal rust sand sapphire     seashell silver skull slate steel stone stonewash sunflower tan
    taupe teal tiger turquoise violet walnut wheat white     wine yellow"""
COLOURS: tuple[str, ...] = tuple(_TABLE.split())
"""102 words in alphabetical order; the first that matches counts."""
_WHOLE = {colour: re.compile(rf"\b{colour}\b") for colour in COLOURS}


def plain_colour(value: str, *, whole_words: bool) -> str:
    """The first colour of the table in a value, as a whole word or (as published) as part of one; else the value."""
    for colour in COLOURS:
        if _WHOLE[colour].search(value) if whole_words else colour in value:
            return colour
    return value

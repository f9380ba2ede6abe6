"""Words for generated catalogues."""

from typing import NamedTuple


class Aisle(NamedTuple):
    """One of the five categories of the shop."""

    root: str
    """The first step of its category paths."""
    groups: dict[str, tuple[str, ...]]
    """Kinds of products by group."""
    attributes: tuple[str, ...]
    modifiers: tuple[str, ...]
    """Words before a kind's name that give additional kinds in large catalogues."""
    sizes: tuple[str, ...]


AISLES: dict[str, Aisle] = {
    "beauty": Aisle(
        "Beauty & Care",
        {
            "Hair": ("hair brush", "shampoo bar", "hair serum", "hair clip"),
            "Skin": ("face cream", "body scrub", "lip balm", "clay mask"),
            "Grooming": ("razor", "nail file", "perfume", "makeup bag"),
        },
        (
            *("cruelty free", "paraben free", "sulfate free", "fragrance free", "oil free", "alcohol free"),
            *("coconut oil", "tea tree", "aloe vera", "argan oil", "shea butter", "vitamin c", "hyaluronic acid"),
            *("dry skin", "sensitive skin", "damaged hair", "fine lines", "dark circles", "long lasting"),
            *("leak proof", "easy carry", "travel size", "non toxic", "plant based", "eco friendly", "bpa free"),
        ),
        ("travel", "men's", "women's", "kids"),
        ("1 Fl Oz", "2.5 Fl Oz", "8 Ounce", "12 Ounce", "100 Ml"),
    ),
    "electronics": Aisle(
        "Electronics & Gadgets",
        {
            "Audio": ("headphones", "soundbar", "radio", "microphone"),
            "Computing": ("keyboard", "monitor stand", "laptop sleeve", "webcam"),
            "Power": ("phone charger", "power bank", "adapter", "flashlight"),
        },
        (
            *("fast charging", "noise cancelling", "plug play", "high speed", "ultra hd", "high resolution", "4g lte"),
            *("usb port", "carrying case", "quad core", "gold plated", "stereo sound", "heavy duty", "hands free"),
            *("wall mountable", "aluminum alloy", "tempered glass", "wireless bluetooth", "light weight"),
            *("battery powered", "motion sensor", "backlit keys", "dust proof", "shock absorbent", "remote control"),
        ),
        ("gaming", "office", "travel", "studio"),
        ("13 Inch", "15.6 Inch", "3 Feet", "6 Feet", "10 Feet"),
    ),
    "fashion": Aisle(
        "Clothing & Shoes",
        {
            "Tops": ("shirt", "blouse", "hoodie", "blazer"),
            "Bottoms": ("jeans", "shorts", "skirt", "leggings"),
            "Footwear": ("sandals", "sneakers", "boots", "slippers"),
        },
        (
            *("machine wash", "hand wash", "dry clean", "slim fit", "regular fit", "loose fit", "relaxed fit"),
            *("long sleeve", "short sleeve", "button closure", "elastic waist", "drawstring closure", "rubber sole"),
            *("polyester cotton", "organic cotton", "faux fur", "merino wool", "quick drying", "moisture wicking"),
            *("arch support", "memory foam", "non slip", "high waist", "wide leg", "stretch fabric", "tummy control"),
        ),
        ("men's", "women's", "girls", "boys"),
        ("Small", "Medium", "Large", "X-Large", "XX-Large"),
    ),
    "garden": Aisle(
        "Home & Garden",
        {
            "Furniture": ("console table", "bookcase", "bar stool", "bed frame"),
            "Textiles": ("curtain", "area rug", "pillow cover", "blanket"),
            "Decor": ("wall clock", "table lamp", "candle holder", "plant pot"),
        },
        (
            *("solid wood", "engineered wood", "steel frame", "space saving", "easy assemble", "easy clean"),
            *("living room", "dining room", "queen size", "king size", "twin size", "storage space", "metal legs"),
            *("super soft", "printing technology", "white finish", "mid century", "contemporary style", "lead free"),
            *("wood finish", "bronze finish", "exquisite workmanship", "blackout lining", "spot clean", "damask weave"),
        ),
        ("bedroom", "kitchen", "patio", "nursery"),
        ("24 Inch", "36 Inch", "52 X 84 Inch", "5 X 8 Feet", "18 X 18 Inch"),
    ),
    "grocery": Aisle(
        "Food & Drinks",
        {
            "Drinks": ("green tea", "ground coffee", "cocoa powder", "ginger juice"),
            "Snacks": ("granola bar", "trail mix", "popcorn", "crackers"),
            "Pantry": ("pasta sauce", "olive oil", "rice noodles", "honey jar"),
        },
        (
            *("gluten free", "sugar free", "dairy free", "nut free", "soy free", "grain free", "fat free", "gmo free"),
            *("low sodium", "low carb", "high protein", "keto friendly", "kosher certified", "usda organic"),
            *(
                "artificial colors",
                "natural flavors",
                "freeze dried",
                "ready eat",
                "individually wrapped",
                "rich creamy",
            ),
            *("simple ingredients", "dietary fiber", "fair trade", "family size", "gift basket", "resealable bag"),
        ),
        ("breakfast", "party", "camping", "school"),
        ("6 Ounce", "12 Ounce", "1 Pound", "2.2 Pound", "16.9 Fl Oz"),
    ),
}
COLOURS = (
    *("Black", "White", "Navy/White", "Light Blue", "Burgundy", "Olive Green", "Charcoal Gray", "Rose Gold", "Teal"),
    *("Beige/Brown", "Mustard Yellow", "Coral", "Lavender", "Silver", "Walnut"),
)
PACKS = ("Pack of 1", "Pack of 2", "Pack of 3", "Pack of 6", "Pack of 12", "24 Count/Box")
SYLLABLES = (
    *("ba", "bel", "bri", "cor", "da", "del", "dra", "el", "fen", "fi", "gal", "gro", "ha", "il", "jor", "ka", "kel"),
    *(
        "lo",
        "lum",
        "ma",
        "mir",
        "na",
        "nov",
        "o",
        "pel",
        "qui",
        "ra",
        "ro",
        "sa",
        "sol",
        "ta",
        "tri",
        "u",
        "val",
        "vex",
    ),
    *("wen", "xi", "ya", "zan", "zo"),
)
FILLERS = (
    "Our team tested every {kind} for weeks before it went on sale",
    "Each {kind} is checked by hand and leaves us in a sturdy box",
    "Write to us if your {kind} isn't what you hoped for, and we will make it right",
    "A thoughtful gift for a birthday, a new home or no reason at all",
    "Designed by people who use one {kind} or another every single day",
    "Small differences in shade come from the light in which the picture was taken",
    "Please compare the measures with those of the {kind} that you have at home",
    "Made in small runs, so that nothing is kept in a warehouse for long",
    "You will wonder how you ever did without this {kind}",
    "Read the leaflet before the first use and keep it at hand",
)
PRAISE = (
    "This {kind} comes with {phrase}, as you would expect",
    "Thanks to {phrase} you will like this {kind} for years",
    "People praise it for {phrase} above all",
    "We paid attention to {phrase} from the first sketch on",
    "With {phrase} it stands out among its kind",
)
WISHES = (
    "i need {a} {kind} with {attributes}{options}",
    "i am looking for {a} {kind} that offers {attributes}{options}.",
    "please find me {a} {kind}{options}, it should have {attributes}",
    "can you get me {a} {kind}{options} that comes with {attributes}",
    "my friend wants {a} {kind}, {attributes}{options}.",
    "show me {a} {kind} for everyday use with {attributes}{options}",
)

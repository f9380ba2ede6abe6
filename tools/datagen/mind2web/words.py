"""Names and phrases for the invented sites."""


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


TOWNS = _names(
    "Marlow Bay|Oster Quay|Tindel Cross|Harrowmere|Vell Harbour|Kestrel Point|Dunmore Sands|Pellworth|Ashgrove|"
    "Quillan|Northwick Falls|Saltmarsh|Brindle Hill|Corrin Vale|Elderport|Fenwick Green|Greyhaven|Lowen Bridge|"
    "Merrin Cove|Thornby|Upper Wray|Wexcombe|Yarrow Heath|Zennor Flats"
)
MONTHS = ("March", "April", "May", "June", "September", "October")
PEOPLE = _names(
    "Ada Quince|Bram Holloway|Cora Venn|Dario Fell|Edda Marsh|Finn Tarrow|Greta Sund|Hugo Lask|Ines Bell|Jonah Pryce|"
    "Kaia Storm|Leo Wick|Mira Dane|Nils Orchard|Opal Reyes|Piet Vos"
)
SITES = {
    "travel": ("wrenair", "blueheron", "skylarkjets", "ternlines"),
    "shop": ("lanternmarket", "oakandivy", "copperkettle", "tidewares"),
    "table": ("forkandferry", "saffronroom", "dinebook", "threespoons"),
    "jobs": ("hirewell", "workfinch", "trellisjobs", "ladderly"),
    "office": ("vellcounty", "harrowmerecity", "corrinpermits", "wraystate"),
}
GOODS = tuple(
    f"{quality} {thing}"
    for quality in ("Linen", "Walnut", "Copper", "Woollen", "Enamel", "Bamboo")
    for thing in ("Lamp", "Kettle", "Blanket", "Chair", "Satchel", "Clock", "Jacket", "Teapot")
)
CUISINES = ("Coastal", "Vegetarian", "Grill", "Noodles", "Bakery", "Tapas", "Curry", "Farmhouse")
KITCHENS = ("The Copper Ladle", "Juniper Yard", "Salt and Stone", "Mill House", "Old Pier Kitchen", "Plum Street Grill")
TRADES = ("Bookbinder", "Data Analyst", "Gardener", "Night Nurse", "Tram Driver", "Web Designer", "Welder", "Librarian")
EMPLOYERS = ("Heron Works", "Tarrow Mills", "Vell Clinic", "Lask Brothers", "Greyhaven Library", "Orchard Labs")
PERMITS = (
    "Fishing permit",
    "Street stall licence",
    "Parking badge",
    "Dog licence",
    "Building permit",
    "Market pitch",
    "Boat mooring",
    "Tree felling consent",
)
TOPICS = _names(
    "Gift cards|Group rates|Opening hours|Travel news|Careers|Press|Accessibility|Sitemap|Investors|Cookies|Privacy|"
    "Terms of use|Newsletter|Mobile app|Partners|Sustainability|Delivery|Returns|Help centre|Contact us|Safety|"
    "Membership|Rewards|Stories|Community|Reviews|Find a branch|Track an order|Sign in|Create an account"
)
SUBJECTS = ("Members", "Our guests", "Families", "New customers", "Neighbours", "Weekend visitors", "Students")
VERBS = ("save on", "ask about", "can now book", "share stories of", "read more about", "compare", "love")
OBJECTS = (
    "early mornings by the water",
    "quiet weekdays in autumn",
    "our refreshed loyalty scheme",
    "free changes until the day before",
    "the new branch at the station",
    "local makers and their workshops",
    "longer opening hours this season",
)

"""WebShop: search a shop, choose options, and buy one product that fits an instruction."""

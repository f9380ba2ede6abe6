"""WebShop: search a shop, choose options, and buy a product that fits an instruction."""

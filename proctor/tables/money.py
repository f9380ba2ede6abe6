"""Money as text: four significant digits, so that 0.005 is not 0.01."""

import math

DIGITS = 4


def money_text(amount: float) -> str:
    """The amount with four significant digits, and at least two decimals below 100."""
    if not amount:
        return "0.00"
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(amount))))
    whole, dot, fraction = f"{amount:,.{decimals}f}".partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}" if dot and decimals > 1 else f"{whole}{dot}{fraction}"

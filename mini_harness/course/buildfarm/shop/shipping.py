"""What sending a parcel costs."""

FREE_FROM_CENTS = 5000
PRICE_CENTS = 499


def shipping_cents(total_cents: int) -> int:
    """Shipping for an order; orders of 50 euros and more are sent free of charge."""
    return 0 if total_cents > FREE_FROM_CENTS else PRICE_CENTS

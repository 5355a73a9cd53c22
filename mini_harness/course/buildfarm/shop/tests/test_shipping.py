from shipping import shipping_cents


def test_a_small_order_pays():
    assert shipping_cents(1999) == 499


def test_a_large_order_is_free():
    assert shipping_cents(12000) == 0


def test_an_order_of_exactly_50_euros_is_free():
    assert shipping_cents(5000) == 0

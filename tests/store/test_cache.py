"""Cached entries: a tenant's own, as long as they are fresh, at most so many."""

from turnout.store import Store


def test_an_entry_is_its_tenants_while_it_is_fresh(store: Store) -> None:
    cache = store.cache
    cache.put("result", "a", "1", b"one", 0, 100, 10)
    assert cache.get("a", "1", 99) == (b"one", 100)
    assert cache.get("a", "1", 100) is None
    assert cache.get("b", "1", 0) is None
    assert (cache.count("a", "result", 0), cache.count("b", "result", 0), cache.count("a", "routing", 0)) == (1, 0, 0)
    cache.put("result", "a", "1", b"two", 50, 150, 10)
    assert cache.get("a", "1", 99) == (b"two", 150)


def test_the_oldest_go_and_what_has_expired(store: Store) -> None:
    cache = store.cache
    for number in range(5):
        cache.put("result", "a", str(number), b"x", number, 1000 if number else 4, 3)
    assert [cache.get("a", str(number), 4) is not None for number in range(5)] == [False, False, True, True, True]
    cache.put("routing", "a", "r", b"x", 0, 1000, 3)
    assert cache.count("a", "result", 4) == 3


def test_clearing_is_for_one_tenant_and_space(store: Store) -> None:
    cache = store.cache
    for tenant, space in (("a", "result"), ("b", "result"), ("a", "routing")):
        cache.put(space, tenant, f"{tenant}{space}", b"x", 0, 1000, 10)
    assert cache.clear("a", "result") == 1
    assert [cache.count(*of, 0) for of in (("a", "result"), ("b", "result"), ("a", "routing"))] == [0, 1, 1]

"""Databases of each kind, as in the tests of the store."""

from tests.store.conftest import prepared, store, url

__all__ = ["prepared", "store", "url"]

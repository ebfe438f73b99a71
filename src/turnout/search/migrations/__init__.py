"""The steps of the search index's schema; see `turnout.store.migrate`."""

"""The steps of the session log's schema; see `turnout.store.migrate`."""

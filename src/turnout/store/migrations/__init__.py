"""The steps of the schema; see `turnout.store.migrate`."""

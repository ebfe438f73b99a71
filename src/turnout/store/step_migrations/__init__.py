"""The steps of the step log's schema; see `turnout.store.migrate`."""

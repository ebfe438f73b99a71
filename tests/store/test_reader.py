"""A log that is only read: all that was written is there, and no writer is started."""

from __future__ import annotations

import threading

import pytest

from stored_decisions import ask
from turnout.core.errors import StoreError
from turnout.store import Store, open_store
from turnout.store.store import StoreReader, open_reader


def test_it_reads_what_was_written(store: Store, store_url: str) -> None:
    decision = ask(tenant="acme")
    store.record(decision)
    store.close()
    with open_reader(store_url) as reader:
        assert type(reader) is StoreReader
        assert reader.records("acme").get(decision.id).to_dict() == decision.to_dict()
        assert reader.tenants() == {"acme": 1}
        assert reader.keys.all() == []
        assert not any(thread.name == "turnout-journal" for thread in threading.enumerate())
        assert reader.records("acme").judge(decision.id, "right", by="me").verdict == "right"


def test_a_schema_is_made_and_a_newer_one_refused(store_url: str) -> None:
    with open_reader(store_url) as reader:
        assert reader.records().tenant == ""
        assert list(reader.records().decisions()) == []
    with open_store(store_url) as store:
        store.backend.change("insert into schema_version values (99, 'future', 'x', 0)", {})
    with pytest.raises(StoreError, match="has schema 99"):
        open_reader(store_url)

"""A server is asked for a profile by the name it had before: it answers, and its log says the new name once."""

import logging
from pathlib import Path

import pytest

from secured_server import call, make_key
from serving import serving

SETTINGS = """
[server]
profile = "tiers-local"
profiles = ["mine.toml"]
lag_s = 60.0
[tiers-learned]
classifier_timeout_ms = 2500
"""


def test_it_is_served_and_the_log_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNOUT_PEPPER", "p" * 16)
    Path("mine.toml").write_text('name = "mine"\nextends = "study-local"\n')
    with caplog.at_level(logging.WARNING, "turnout.runtime"), serving(tmp_path, SETTINGS) as served:
        assert served.server.runtime.profile == "tiers"
        key, other = (make_key(served.store, profiles=(name,)) for name in ("tiers-local", "study"))
        for asked in ({}, {"profile": "tiers-local"}, {"profile": "tiers"}, {"profile": "tiers-local"}):
            got = call(served.url, "POST", "/v1/route", {"text": "hello", **asked}, key=key)
            assert (got.status, got.json["profile"]) == (200, "tiers")
        assert (
            call(served.url, "POST", "/v1/route", {"text": "hello", "profile": "tiers-learned"}, key=other).status
            == 403
        )
        everything = make_key(served.store)
        assert (
            call(served.url, "POST", "/v1/route", {"text": "hello", "profile": "mine.toml"}, key=everything).status
            == 200
        )
        assert call(served.admin, "POST", "/admin/reload", key=make_key(served.store, scopes=("admin",))).status == 200
    said = [record.getMessage() for record in caplog.records if "is now" in record.getMessage()]
    assert sorted(said) == [
        "mine.toml:2 extends: the profile 'study-local' is now 'study': use that name",
        "the profile 'tiers-learned' is now 'tiers': use that name",
        "the profile 'tiers-local' is now 'tiers': use that name",
        "turnout.toml:6 [tiers-learned]: the profile 'tiers-learned' is now 'tiers': use that name",
    ]

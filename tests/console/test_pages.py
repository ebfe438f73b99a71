"""Traffic, models, profiles and keys: what they show, what they change, and what they escape."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from clean_environment import clear_environment
from console.conftest import OWN
from secured_server import RawResponse, call, forget, make_key
from serving import RunningServer, serving
from turnout.console.console import Console
from turnout.console.traffic import bars
from turnout.store import Outcome

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{7*7}}"


def post(served: RunningServer, path: str, **fields: str) -> RawResponse:
    form = {"content-type": "application/x-www-form-urlencoded", **OWN}
    return call(served.url, "POST", path, urlencode(fields).encode(), headers=form)


def see(served: RunningServer, path: str) -> str:
    got = call(served.url, "GET", path)
    assert got.status == 200, got.body
    return got.body.decode()


def test_every_page_says_what_to_do_when_there_is_nothing(served: RunningServer) -> None:
    for path in ("/", "/traffic", "/models", "/profiles", "/keys", "/settings"):
        page = see(served, path)
        assert f'href="{path}" data-key=' in page
        assert 'aria-current="page"' in page
    assert "Nothing was decided" in see(served, "/traffic")
    assert "No keys yet" in see(served, "/keys")


def test_traffic_counts_what_happened(served: RunningServer) -> None:
    for text in ("hi", "Design a multi-tenant billing system with audits", HOSTILE):
        assert call(served.url, "POST", "/v1/route", {"text": text}).status == 200
    assert call(served.url, "POST", "/v1/route", {"text": "hello", "profile": "assist"}).status == 200
    assert served.store.flush(10.0)
    page = see(served, "/traffic?span=hour")
    assert "<b>4</b><span>decisions</span>" in page
    assert "RC-04" in page
    only = see(served, "/traffic?span=hour&profile=assist")
    assert "<b>1</b><span>decisions</span>" in only
    assert HOSTILE not in see(served, "/")
    wrong = call(served.url, "GET", "/traffic?span=%3Cb%3E")
    assert wrong.status == 422
    assert b"<b>" not in wrong.body


def test_bars_stand_for_all_of_a_stretch(served: RunningServer) -> None:
    for number in range(20):
        call(served.url, "POST", "/v1/route", {"text": f"question {number}"})
    assert served.store.flush(10.0)
    found = served.store.records().stats(bucket_ms=60_000)
    for bar in bars(found, 60_000):
        assert sum(part.height for part in bar.parts) == pytest.approx(100.0, abs=0.1)


def test_a_violation_is_shown_with_its_decision(served: RunningServer) -> None:
    told = call(served.url, "POST", "/v1/route", {"text": "thanks, that was great", "profile": "assist"}).json
    served.store.settle(told["id"], Outcome("answered", retrieval=True))
    assert served.store.flush(10.0)
    page = see(served, "/traffic?span=hour")
    if told["route"] in ("CONVERSATIONAL", "PLATFORM"):
        assert f"/decisions/{told['id']}" in page


def test_models_say_whether_they_answer(served: RunningServer) -> None:
    page = see(served, "/models")
    assert "demonstration model" in page
    assert "ready" in page
    assert post(served, "/reload").status == 303


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('extends = "tiers"', "Valid: tiers"),
        ('extends = "tiers"\nroutess = 1', "did you mean"),
        ('extends = "/etc/passwd"', "here it may be one of"),
        ('extends = "tiers"\nlayers = [{ kind = "student.v1", model = "/etc" }]', "layers[0].model: a folder"),
        ("= <script>", "problem"),
    ],
)
def test_a_pasted_profile_is_checked(served: RunningServer, source: str, said: str) -> None:
    got = post(served, "/profiles/check", source=source).body.decode()
    assert said in got
    assert "<script>" not in got


def test_an_address_that_is_none_is_a_page_in_a_browser(served: RunningServer) -> None:
    browser = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
    got = call(served.url, "GET", "/nothing-here", headers=browser)
    assert (got.status, got.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert b'<a href="/">' in got.body
    assert b"default-src 'none'" in got.headers["content-security-policy"].encode()
    assert call(served.url, "GET", "/nothing-here").json["error"]["type"] == "not_found_error"
    assert call(served.url, "GET", "/api/claims/nothing", headers=browser).json["error"]["type"] == "not_found_error"


def test_a_profile_is_shown_whole(served: RunningServer) -> None:
    assert "student" in see(served, "/profiles/tiers")
    assert call(served.url, "GET", "/profiles/nothing").status == 404


def test_the_first_key_is_not_made_by_whoever_is_here(served: RunningServer) -> None:
    assert "turnout keys create" in see(served, "/keys")
    refused = post(served, "/keys", name="x", **{"scope-admin": "1"})
    assert refused.status == 403
    assert not served.store.keys.any()


def test_a_key_is_made_shown_once_and_revoked(served: RunningServer) -> None:
    admin = make_key(served.store, scopes=("admin", "decisions:read"))
    forget(served)
    assert call(served.url, "GET", "/keys").status == 303
    signed = call(served.url, "POST", "/login", urlencode({"key": admin}).encode(), headers={**OWN})
    cookie = signed.headers["set-cookie"].partition(";")[0]
    own = {**OWN, "cookie": cookie, "content-type": "application/x-www-form-urlencoded"}

    def send(**fields: str) -> RawResponse:
        return call(served.url, "POST", "/keys", urlencode(fields).encode(), headers=own)

    assert send(name="", **{"scope-ask": "1"}).status == 422
    assert send(name="x").status == 422
    wrong = send(name="x", budget_usd="<b>much", **{"scope-ask": "1"})
    assert wrong.status == 422
    assert b"<b>much" not in wrong.body
    made = send(name=HOSTILE, budget_usd="2.5", **{"scope-ask": "1"})
    assert made.status == 201
    page = made.body.decode()
    assert "<img" not in page.replace('<img src="/static', "")
    key = page.partition('<pre id="made">')[2].partition("</pre>")[0]
    assert call(served.url, "GET", "/v1/models", key=key).status == 200
    listed = call(served.url, "GET", "/keys", headers={"cookie": cookie}).body.decode()
    assert key not in listed
    assert "$2.50" in listed
    assert call(served.url, "POST", f"/keys/{key[4:16]}/revoke", b"", headers=own).status == 303
    assert call(served.url, "GET", "/v1/models", key=key).status == 401
    # Who signs out is out, whatever a browser kept.
    assert call(served.url, "POST", "/logout", b"", headers=own).status == 303
    assert call(served.url, "GET", "/keys", headers={"cookie": cookie}).status == 303


def test_who_administers_nothing_sees_no_keys(served: RunningServer) -> None:
    key = make_key(served.store, scopes=("decisions:read",))
    forget(served)
    signed = call(served.url, "POST", "/login", urlencode({"key": key}).encode(), headers=OWN)
    cookie = signed.headers["set-cookie"].partition(";")[0]
    for path in ("/keys", "/models", "/profiles"):
        assert call(served.url, "GET", path, headers={"cookie": cookie}).status == 403
    assert "/keys" not in call(served.url, "GET", "/", headers={"cookie": cookie}).body.decode()


def test_a_student_is_shown_by_what_it_had_not_seen(served: RunningServer) -> None:
    page = see(served, "/learning")
    place = page.partition('href="/learning/assist/student/')[2].partition('"')[0]
    shown = see(served, f"/learning/assist/student/{place}")
    assert "held-out questions" in shown
    assert "style=" not in shown  # which the policy would not let work
    assert shown.count("<svg") == 3
    assert call(served.url, "GET", "/learning/assist/student/none").status == 404
    assert call(served.url, "GET", "/learning/../x/y").status in (404, 422, 400)
    assert post(served, "/learning/assist/student").status == 422  # nothing to go back to


def test_questions_are_labelled_least_sure_first(served: RunningServer) -> None:
    for text in (HOSTILE, "hello there", "zorbling frumious grumblewump"):
        call(served.url, "POST", "/v1/route", {"text": text})
    assert served.store.flush(10.0)
    page = see(served, "/label?profile=tiers")
    assert "<img src=x" not in page
    first = page.partition('id="q')[2].partition('"')[0]
    wrong = post(served, f"/label/{first}", route="NOWHERE")
    assert wrong.status == 422
    done = post(served, f"/label/{first}", route="COMPLEX")
    assert done.status == 200
    assert served.store.records().feedback(first)[0].should_be == "COMPLEX"
    assert first not in see(served, "/label?profile=tiers")
    assert call(served.url, "GET", "/label?profile=nothing").status == 404


def test_settings_say_where_each_value_is_from_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch, tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden-secret-1")
    monkeypatch.setenv("TURNOUT_PEPPER", "pepper-hidden-secret-2")
    settings = (
        '[server]\nlag_s = 60.0\n\n[store]\nkeep_days = 30\n\n[models.main]\nmodel = "openai/gpt-5"\n'
        'key = { env = "OPENAI_API_KEY" }\n'
    )
    with serving(tmp_path, settings, pages=Console) as served:
        page = see(served, "/settings")
        assert "keep_days" in page
        assert re.search(r"lag_s.*?60.*?file.*?turnout\.toml:2", page, re.DOTALL)
        assert "hidden-secret" not in page
        assert "OPENAI_API_KEY" in page
        assert "the files match what is in force" in page
        file = tmp_path / "turnout.toml"
        file.write_text(settings.replace("keep_days = 30", "keep_days = 60").replace("gpt-5", "gpt-5-mini"))
        page = see(served, "/settings")
        assert re.search(r"store\.keep_days.*?30.*?60.*?a restart", page, re.DOTALL)
        file.write_text(settings.replace("keep_days", "keep_dais"))
        page = see(served, "/settings")
        assert "keep_dais" in page
        assert "did you mean" in page

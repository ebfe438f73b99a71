"""Text that would like to run, in every field that a page shows, in a real browser: what of it ran.

A payload has run if a dialog opened, if the page's policy had to stop something, if an element has a handler or an
address that is a script, or if anything was asked of another host.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from besieged import call, forget, make_key
from console.inhabited import CLAIM, NOTED, Inhabited, inhabited
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
# As many as one world has: a page of the list shows them all.
CHUNK = 40
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


class Tried(NamedTuple):
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
        self.stopped = self.views = 0
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


def try_payloads(browser: Any, folder: Path, words: Sequence[str], *, every: int = 1) -> Tried:
    """Show them in every field; of pages that show one alone, every so many."""
    with inhabited(folder, words=words) as world:
        for ident, word in zip(world.decisions[-len(words) :], words, strict=True):
            world.served.store.records().judge(ident, "wrong", by="somebody", note=word)
        watcher = Watcher(browser, world.served.url)
        for _ in show(watcher.page, world, words[::every], watcher.context):
            watcher.look()
        watcher.context.close()
        return Tried(len(words), watcher.views, watcher.ran, watcher.stopped, watcher.left)


def show(page: Any, world: Inhabited, alone: Sequence[str], context: Any) -> Iterator[None]:
    """One view after the other."""
    url = world.served.url
    for path in (*world.pages, "/traffic?span=hour&profile=tiers"):
        page.goto(url + path)
        yield
    ids = world.decisions[-len(alone) :]
    for ident, word in zip(ids, alone, strict=True):
        said = quote(word[:300], safe="")
        for path in (f"/decisions/{ident}", f"/decisions?text={said}&route={said}&session={said}"):
            page.goto(url + path)
            yield
    many = "\n".join(alone)[:4000]
    for path in ("/playground", "/profiles"):
        page.goto(url + path)
        page.locator("textarea").first.fill(many if path == "/playground" else f'extends = "tiers"\n{many}')
        page.get_by_role("button", name="Decide" if path == "/playground" else "Validate").press("Enter")
        page.locator("#result .verdict" if path == "/playground" else "#problems > *").first.wait_for()
        yield
    asked = (("/ask", NOTED, "#ended a"), ("/docs", "How often is a request of the client retried?", "#ended p"))
    for path, question, ended in (*asked, ("/chat", CLAIM, ".claim"), ("/study", "Define osmosis", "#saved *")):
        for text in (question, f"{question} {many}"[:1900]):
            page.goto(url + path)
            if path == "/study":
                image = {"name": f"{alone[0]}.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n" + bytes(64)}
                page.set_input_files("#image", image)
            page.locator("[data-search]").fill(text)
            page.keyboard.press("Enter")
            # A question that is all payload may have no answer: then a sentence says so.
            page.locator(ended if text == question else f"{ended}, .error, .turn, #told-here *").first.wait_for()
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
            yield
    for path in ("/decisions?outcome={}", "/traffic?span={}", "/label?profile={}", "/profiles/{}", "/learning/{}/x/y"):
        page.goto(url + path.format(quote(alone[0][:200].replace("/", ""), safe="")))
        yield
    keys = [make_key(world.served.store, name=word[:200], tenant=word[:100]) for word in alone]
    keys.append(make_key(world.served.store, name="own", scopes=SCOPES))
    forget(world.served)
    body = urlencode({"key": keys[-1]}).encode()
    got = call(url, "POST", "/login", body, headers={"sec-fetch-site": "same-origin"})
    name, _, value = got.headers["set-cookie"].partition(";")[0].partition("=")
    context.add_cookies([{"name": name, "value": value, "url": url}])
    for path in ("/keys", "/decisions", "/"):
        page.goto(url + path)
        yield

"""A folder in the index: what is read, what is left alone, where a hit stands, and what is embedded again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.errors import FolderMissing
from turnout.search import Changes, Folder, Index, IndexDocument, place_of
from turnout.search.section import read_file

HOUSE = """---
tags: home
---
# House

Everything about the house.

## Boiler

The boiler was serviced in May by Anna.

```sh
# not a heading
```

Garden
------

Roses are planted in the garden.
"""
GUIDE = """=====
Guide
=====

Welcome to the guide.

Install
=======

Run the installer twice.

.. function:: connect(host, *, timeout=5)

   Opens a connection to the host.
"""
CODE = '''"""Talks to boilers."""

LIMIT = 3


class Boiler:
    """A boiler."""

    def heat(self, degrees):
        """Heats the water."""


@cached
async def find(name):
    return name
'''
SCRIPT = "export function connect(host) {\n  return open(host)\n}\n\nclass Pump {\n  run() {}\n}\n"
PAGE = """<html><head><title>json module</title></head><body>
<div class="related" role="navigation"><div>next topic</div></div>
<section id="module-json"><h1>json<a class="headerlink">¶</a></h1><p>Reads and writes JSON.</p>
<dl><dt class="sig" id="json.dumps"><code>json.dumps</code>(<em>obj</em>)<a>¶</a></dt>
<dd><p>Gives a string.</p><pre>&gt;&gt;&gt; json.dumps(
...     [])</pre></dd></dl></section></body></html>"""


class Case(NamedTuple):
    id: str
    file: str
    text: str
    headings: list[tuple[tuple[str, ...], str, str]]
    """The headings, the anchor and the first line of each section."""


CASES = [
    Case(
        "markdown",
        "house.md",
        HOUSE,
        [
            ((), "", "---"),
            (("House",), "house", "Everything about the house."),
            (("House", "Boiler"), "boiler", "The boiler was serviced in May by Anna."),
            (("House", "Garden"), "garden", "Roses are planted in the garden."),
        ],
    ),
    Case(
        "reStructuredText",
        "guide.rst",
        GUIDE,
        [
            (("Guide",), "guide", "Welcome to the guide."),
            (("Guide", "Install"), "install", "Run the installer twice."),
            (("Guide", "Install", "connect"), "connect", ".. function:: connect(host, *, timeout=5)"),
        ],
    ),
    Case(
        "python",
        "boiler.py",
        CODE,
        [
            ((), "", '"""Talks to boilers."""'),
            (("Boiler",), "Boiler", "class Boiler:"),
            (("Boiler", "Boiler.heat"), "Boiler.heat", "def heat(self, degrees):"),
            (("find",), "find", "@cached"),
        ],
    ),
    Case("python that does not parse", "x.py", "def f(:\n  pass\n", [(("f",), "f", "def f(:")]),
    Case(
        "another language",
        "pump.js",
        SCRIPT,
        [(("connect",), "connect", "export function connect(host) {"), (("Pump",), "Pump", "class Pump {")],
    ),
    Case("text", "note.txt", "# just a note\n", [((), "", "# just a note")]),
    Case(
        "html",
        "json.html",
        PAGE,
        [
            (("json",), "module-json", "Reads and writes JSON."),
            (("json", "json.dumps"), "json.dumps", "json.dumps(obj)"),
        ],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_file_is_cut_by_its_headings(case: Case) -> None:
    found = read_file(case.file, case.text.encode())
    lines = [
        (one.heading, one.anchor, found.text[one.start : one.end].strip().split("\n")[0]) for one in found.sections
    ]
    assert lines == case.headings


def test_code_in_a_page_keeps_its_lines() -> None:
    assert ">>> json.dumps(\n...     [])" in read_file("json.html", PAGE.encode()).text


@given(st.text(alphabet="#=- \n`ab.:\t", max_size=200), st.sampled_from(["a.md", "a.rst", "a.py", "a.go", "a.html"]))
def test_sections_lie_in_the_text_in_order(text: str, name: str) -> None:
    found = read_file(name, text.encode())
    end = 0
    for section in found.sections:
        assert end <= section.start < section.end <= len(found.text)
        end = section.end


class Counting:
    """An embedder that counts what it was asked for."""

    name = "counting"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        rows = [[1.0 + text.count(letter) for letter in "abcdefgh"] for text in texts]
        return [np.array(row, np.float32) / np.linalg.norm(row) for row in rows]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "house.md").write_text(HOUSE, encoding="utf-8")
    (folder / "deep" / "guide.rst").write_text(GUIDE, encoding="utf-8")
    return folder


def test_a_hit_says_where_it_stands(index: Index, root: Path) -> None:
    Folder(root, index).sync()
    place = place_of(index.search("when was the boiler serviced?").hits[0])
    assert (place.file, place.heading, place.anchor) == ("house.md", ("House", "Boiler"), "boiler")
    assert HOUSE[place.start : place.end].strip().startswith("The boiler was serviced in May")


def test_only_what_has_changed_is_read_and_embedded(opened: Callable[..., Index], root: Path) -> None:
    embedder = Counting()
    index = opened(embedder=embedder)
    assert Folder(root, index, lang="en").sync() == Changes(added=7)
    assert Folder(root, index, lang="en").sync() == Changes()
    embedder.texts.clear()
    text = HOUSE.replace("Roses are", "Tulips and roses are").replace("# House\n", "# House\n\nA new line.\n")
    (root / "house.md").write_text(text, encoding="utf-8")
    before = time.process_time()  # a busy machine is not what is tested
    changes = Folder(root, index, lang="en").sync()
    embedded = [said.split("\n")[0] for said in embedder.texts]
    found = index.search("tulips", lang="en").hits
    assert time.process_time() - before < 1.0
    assert place_of(found[0]).heading == ("House", "Garden")
    # The section on the boiler has moved, and says what it said.
    assert changes == Changes(changed=3, unchanged=1)
    assert sorted(embedded) == ["House", "House › Garden"]
    moved = index.search("boiler serviced", lang="en").hits[0]
    assert text[place_of(moved).start :].lstrip().startswith("The boiler")


def test_what_is_gone_is_forgotten(index: Index, root: Path) -> None:
    folder = Folder(root, index)
    folder.sync()
    (root / "deep" / "guide.rst").unlink()
    (root / "house.md").write_text("# House\n\nEmpty now.\n", encoding="utf-8")
    assert folder.sync() == Changes(changed=1, deleted=6)
    assert index.ids() == ["house.md#house"]
    assert folder.forget() == 1
    assert index.ids() == []


def test_folders_of_one_index_do_not_touch_each_other(index: Index, root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "house.md").write_text("# House\n\nAnother house.\n", encoding="utf-8")
    Folder(root, index, name="a", attributes={"library": "a"}).sync()
    Folder(other, index, name="b").sync()
    assert {ident.split("/")[0] for ident in index.ids()} == {"a", "b"}
    Folder(other, index, name="b").forget()
    assert len(index.ids()) == 7


def test_nothing_outside_of_the_folder_is_read(index: Index, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("the treasure is under the oak", encoding="utf-8")
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "more.md").write_text("more treasure", encoding="utf-8")
    os.symlink(tmp_path / "secret.md", root / "link.md")
    os.symlink(tmp_path / "vault", root / "linked")
    os.mkfifo(root / "pipe.md")
    (root / ".hidden.md").write_text("hidden treasure", encoding="utf-8")
    Folder(root, index).sync()
    assert index.search("treasure").hits == ()


def test_a_file_that_cannot_be_read_is_named_and_tried_again(index: Index, root: Path) -> None:
    (root / "broken.pdf").write_bytes(b"no pdf")
    folder = Folder(root, index)
    folder.sync()
    assert folder.unread == {"broken.pdf": "it is no PDF, whatever its name says"}
    again = Folder(root, index)
    again.sync()
    assert list(again.unread) == ["broken.pdf"]
    (root / "broken.pdf").unlink()
    again.sync()
    assert again.unread == {}


def test_a_folder_that_is_not_there_forgets_nothing(index: Index, root: Path) -> None:
    Folder(root, index).sync()
    root.rename(root.with_name("unmounted"))
    with pytest.raises(FolderMissing, match="notes"):
        Folder(root, index).sync()
    assert len(index.ids()) == 7


def test_a_process_that_ends_in_the_middle_leaves_nothing_behind(
    index: Index, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert = index.upsert

    def dies(documents: Iterable[IndexDocument]) -> Changes:
        upsert(documents)
        raise KeyboardInterrupt

    monkeypatch.setattr(index, "upsert", dies)
    with pytest.raises(KeyboardInterrupt):
        Folder(root, index).sync()
    monkeypatch.undo()
    (root / "house.md").write_text("# Other\n\nNow something else.\n", encoding="utf-8")
    Folder(root, index).sync()
    assert [ident for ident in index.ids() if ident.startswith("house")] == ["house.md#other"]


def test_a_window_of_a_passage_is_found(opened: Callable[..., Index]) -> None:
    """A passage of two subjects is as near to a question on the second as its window on that is."""
    embedder = Counting()
    index = opened(embedder=embedder)
    two = f"{'a cab ' * 40}.\n\n{'h egg ' * 20}."
    index.upsert([IndexDocument("two", two, lang="en"), IndexDocument("one", "b " * 60, lang="en")])
    assert max(map(len, embedder.texts)) <= 250
    hits = index.search("hhh egg", lang="en", vectors=9.0).hits
    assert [hit.id for hit in hits][:1] == ["two"]


def test_what_the_pdf_library_logs_is_not_printed(index: Index, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It quotes the file, and a command line that has no log prints it."""
    pytest.importorskip("pypdf")
    (root / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    folder = Folder(root, index)
    folder.sync()
    assert list(folder.unread) == ["broken.pdf"]
    assert [one.name for one in caplog.records if one.name.startswith("pypdf")] == []

"""One hybrid index for cards, pages, notes and files: full text in every language, vectors where they help.

>>> from turnout.search import IndexDocument, open_index
>>> with open_index("notes.db") as index:  # doctest: +SKIP
...     index.upsert([IndexDocument("1", "The boiler was serviced in May.", title="House")])
...     index.search("when was the boiler serviced?").hits[0].text
"""

from __future__ import annotations

from .document import Attributes, Changes, Filters, Hit, IndexDocument, Results, Vote
from .folder import FilePlace, Folder, place_of
from .index import Index, open_index

__all__ = [
    "Attributes",
    "Changes",
    "FilePlace",
    "Filters",
    "Folder",
    "Hit",
    "Index",
    "IndexDocument",
    "Results",
    "Vote",
    "open_index",
    "place_of",
]

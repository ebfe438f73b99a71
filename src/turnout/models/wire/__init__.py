"""The wire formats: each is read into the values of `value` and written from them, only here."""

from __future__ import annotations

from collections.abc import Mapping

from turnout.models.provider import Wire

from .chat import ChatFormat
from .format import Format
from .messages import MessagesFormat
from .responses import ResponsesFormat

FORMATS: Mapping[Wire, Format] = {form.wire: form for form in (ChatFormat(), MessagesFormat(), ResponsesFormat())}

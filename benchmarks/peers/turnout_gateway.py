"""Turnout's gateway as `turnout serve` runs it, with one key, which is written to a file.

python turnout_gateway.py PORT CONFIG DATABASE KEY_FILE
"""

import sys
from pathlib import Path

import uvloop
from msgspec.structs import replace

from turnout.config.server import server_settings
from turnout.runtime.pepper import read_pepper
from turnout.runtime.runtime import Runtime
from turnout.store import open_store
from turnout.store.keys import Key
from turnout.web.auth import digest
from turnout.web.key import new_credential, spell
from turnout.web.serve import serve
from turnout.web.server import Server

PORT, CONFIG, DATABASE, KEY_FILE = sys.argv[1:]


async def main() -> None:
    store = open_store(DATABASE, config=CONFIG)
    credential = new_credential()
    store.keys.add(Key(credential.key_id, digest(credential.secret, read_pepper()), "benchmark"))
    Path(KEY_FILE).write_text(spell(credential), encoding="ascii")
    settings = replace(server_settings(CONFIG), port=int(PORT), admin_port=0)
    runtime = Runtime(store, profile=settings.profile, profiles=settings.profiles, config=CONFIG)
    await serve(Server(settings, runtime), lambda addresses: None)


if __name__ == "__main__":
    uvloop.run(main())

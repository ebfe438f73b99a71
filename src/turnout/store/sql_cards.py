"""Statements about claim cards. The rules in `sql` apply."""

from __future__ import annotations

# --- the operator's own: all users of a store share its cards

CARD = """
select body from claim_cards where id = :id
"""

CARDS = """
select id, body from claim_cards
where id > :above
  and (cast(:claim_type as text) is null or claim_type = :claim_type)
  and (cast(:verdict as text) is null or verdict = :verdict)
  and (visible or :hidden)
order by id
limit :most
"""

COUNT_CARDS = """
select count(*) from claim_cards
"""

VISIBLE_CARDS = """
select id, indexed from claim_cards where visible
"""

KEEP_CARD = """
insert into claim_cards (id, claim_text, claim_type, verdict, twin_of, visible, indexed, created_ms, body)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (id) do update
set claim_text = excluded.claim_text, claim_type = excluded.claim_type, verdict = excluded.verdict,
  twin_of = excluded.twin_of, visible = excluded.visible, indexed = excluded.indexed, body = excluded.body
"""

# Only if it is still what was indexed.
CARD_INDEXED = """
update claim_cards set indexed = ? where id = ? and body = ?
"""

DELETE_CARD = """
delete from claim_cards where id = :id
"""

ALL_CARDS = """
select * from claim_cards where id > :above order by id limit :most
"""

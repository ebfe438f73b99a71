"""Statements about questions to sources and their cached answers. The rules in `sql` apply."""

from __future__ import annotations

# --- what a tenant may read

# Feedback on a profile's questions, the newest first.
JUDGED = """
select d.id, d.question, d.route, f.verdict, f.should_be
from feedback f
join decisions d on d.tenant = f.tenant and d.id = f.decision_id
where f.tenant = :tenant and d.profile in (:profile, :profile_was, :profile_was_too) and d.question is not null
order by f.id desc
limit :most
"""

CACHED = """
select entry, expires_ms from cache_entries where tenant = :tenant and id = :id and expires_ms > :now_ms
"""

COUNT_CACHED = """
select count(*) from cache_entries where tenant = :tenant and space = :space and expires_ms > :now_ms
"""

CLEAR_CACHED = """
delete from cache_entries where tenant = :tenant and space = :space
"""

# The newest questions, and the parts of each with it: a part's id comes before its question's.
SEARCHES = """
select d.id, d.parent_id, d.question, d.digest, d.routes, d.created_ms,
  o.ended, o.fallback, o.elapsed_ms, o.sources, o.extra
from decisions d
join outcomes o on o.tenant = d.tenant and o.decision_id = d.id
where d.tenant = :tenant
  and d.profile = :profile
  and d.id < :below
order by d.id desc
limit :most
"""

# --- the operator's own: adding to the cache, and its limits

KEEP_CACHED = """
insert into cache_entries (id, space, tenant, entry, created_ms, expires_ms)
values (?, ?, ?, ?, ?, ?)
on conflict (id) do update
set entry = excluded.entry, created_ms = excluded.created_ms, expires_ms = excluded.expires_ms
"""

TRIM_CACHED = """
delete from cache_entries
where space = :space
  and (expires_ms <= :now_ms or id not in (
    select id from cache_entries where space = :space order by created_ms desc, id limit :most
  ))
"""

ALL_CACHED = """
select * from cache_entries where id > :above order by id limit :most
"""

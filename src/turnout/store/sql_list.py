"""Statements that list decisions by any combination of filters. The rules in `sql` apply.

Each begins with the condition that leaves the fewest rows: a time, a session, feedback, or kinds of decisions. All have
the same filters, which can be combined; the text of a question is compared last.
"""

from __future__ import annotations

# --- pieces of the statements below

_COLUMNS = """
  d.id, d.parent_id, d.tenant, d.session, d.profile, d.profile_hash, d.route, d.routes, d.confidence, d.decided_by,
  d.outcome, d.teacher, d.elapsed_us, d.created_ms, d.question, d.digest, d.kept, d.asked, d.body, d.key_id
"""

_BETWEEN = """
  d.parent_id is null
  and d.id < :below
  and d.id > :above
  and d.created_ms >= :since_ms
  and d.created_ms < :until_ms
"""

_FILTERS = f"""
  {_BETWEEN}
  and (cast(:profile as text) is null or d.profile in (:profile, :profile_was, :profile_was_too))
  and (cast(:decided_by as text) is null or d.decided_by = :decided_by)
  and (cast(:key_id as text) is null or d.key_id = :key_id)
  and (cast(:routed as text) is null or replace(d.routes, :routed, '') <> d.routes)
  and (cast(:outcome as text) is null or d.outcome like :outcome)
"""

# The latest feedback counts.
_VERDICT = """
  (cast(:verdict as text) is null or cast(:verdict as text) = (
    select f.verdict from feedback f where f.tenant = d.tenant and f.decision_id = d.id
    order by f.id desc limit 1
  ))
"""

_TEXT = """
  (cast(:needle as text) is null or lower(d.question) like :needle escape '!')
"""

_LIST = f"""
select {_COLUMNS} from decisions d
where d.tenant = :tenant
  and {_FILTERS}
  and (cast(:session as text) is null or d.session = :session)
  and {_VERDICT}
  and {_TEXT}
"""

# The tenants come first, so that an index that begins with the tenant also serves reads of all tenants.
_WHOSE = """
with recursive whose(tenant) as (
  select min(tenant) from decisions where tenant = :tenant
  union all
  select (select min(d.tenant) from decisions d where d.tenant = :tenant and d.tenant > w.tenant)
  from whose w where not (w.tenant is null)
)
"""

# All kinds, each found along the index from the one before it. SQLite uses the index only if the values it compares
# with are not plain columns, hence the empty texts; `:last` is above every id of a kind.
_KINDS = f"""
{_WHOSE},
kind(tenant, key_id, profile, routes, decided_by, outcome) as (
  select d.tenant, d.key_id, d.profile, d.routes, d.decided_by, d.outcome
  from whose w
  cross join decisions d
  where d.tenant = w.tenant
    and d.id = (
      select x.id from decisions x
      where x.tenant = w.tenant and x.parent_id is null and length(x.routes) <= 200
      order by x.key_id, x.profile, x.routes, x.decided_by, x.outcome
      limit 1
    )
  union all
  select d.tenant, d.key_id, d.profile, d.routes, d.decided_by, d.outcome
  from kind k
  cross join decisions d
  where d.tenant = k.tenant
    and d.id = (
      select x.id from decisions x
      where x.tenant = k.tenant and x.parent_id is null and length(x.routes) <= 200
        and (x.key_id, x.profile, x.routes, x.decided_by, x.outcome, x.id)
          > (k.key_id || '', k.profile || '', k.routes || '', k.decided_by || '', k.outcome || '', :last)
      order by x.key_id, x.profile, x.routes, x.decided_by, x.outcome
      limit 1
    )
)
"""

# --- what a tenant may read

# Newest first, from below a given id; the caller asks again with the last id it saw.
DECISIONS_DOWN = f"""
{_LIST}
order by d.id desc limit :most
"""

# Oldest first, from above a given id: what a follower or an export reads.
DECISIONS_UP = f"""
{_LIST}
order by d.id limit :most
"""

# The id so many rows back: the rows above it are searched at a time.
ID_BELOW = """
select id from decisions where tenant = :tenant and id < :below order by id desc limit 1 offset :most
"""

DECISIONS_IN_SESSION = f"""
{_WHOSE}
select {_COLUMNS}
from whose w
cross join decisions d
where d.tenant = w.tenant
  and d.session = :session
  and {_FILTERS}
  and {_VERDICT}
  and {_TEXT}
order by d.id desc limit :most
"""

DECISIONS_JUDGED = f"""
select {_COLUMNS}
from (
  select f.tenant, f.decision_id
  from feedback f
  where f.tenant = :tenant
    and f.decision_id < :below
    and f.decision_id > :above
    and f.verdict = :verdict
    and not exists (
      select 1 from feedback later
      where later.tenant = f.tenant and later.decision_id = f.decision_id and later.id > f.id
    )
) as judged
cross join decisions d
where d.tenant = judged.tenant
  and d.id = judged.decision_id
  and {_FILTERS}
  and {_TEXT}
order by d.id desc limit :most
"""

# The rows of the wanted kinds, and those with too many routes to have a kind.
DECISIONS_OF_KIND = f"""
{_KINDS}
select {_COLUMNS}
from decisions d
where d.tenant = :tenant
  and d.id in (
    select id from (
      select d.id
      from kind k
      cross join decisions d
      where d.tenant = k.tenant
        and d.key_id = k.key_id
        and d.profile = k.profile
        and d.routes = k.routes
        and d.decided_by = k.decided_by
        and d.outcome = k.outcome
        and length(d.routes) <= 200
        and {_BETWEEN}
        and (cast(:profile as text) is null or k.profile in (:profile, :profile_was, :profile_was_too))
        and (cast(:decided_by as text) is null or k.decided_by = :decided_by)
        and (cast(:key_id as text) is null or k.key_id = :key_id)
        and (cast(:routed as text) is null or replace(k.routes, :routed, '') <> k.routes)
        and (cast(:outcome as text) is null or k.outcome like :outcome)
      order by d.id desc
      limit :most
    ) as few
    union all
    select id from (
      select d.id
      from whose w
      cross join decisions d
      where d.tenant = w.tenant and length(d.routes) > 200 and {_FILTERS}
      order by d.id desc
      limit :most
    ) as many
  )
order by d.id desc limit :most
"""

# The values that a list can be filtered by.
DECISION_KINDS = f"""
{_KINDS}
select distinct profile, routes, decided_by, outcome, key_id from kind limit :most
"""

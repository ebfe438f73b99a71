"""Statements that list decisions, by any combination of filters. `sql` has them with all others; its rules hold.

Each begins with what leaves the fewest rows to look at: a time, a session, what people said, or the kinds there are.
All have the same filters, so that any of them may be combined; the text of a question is compared last.
"""

from __future__ import annotations

# --- what a tenant may read

# Newest first, from below a given id; the caller asks again with the last id it saw.
DECISIONS_DOWN = """
select id, parent_id, tenant, session, profile, profile_hash, route, routes, confidence, decided_by,
  outcome, teacher, elapsed_us, created_ms, question, digest, kept, asked, body, key_id
from decisions
where tenant = :tenant
  and parent_id is null
  and id < :below
  and id > :above
  and created_ms >= :since_ms
  and created_ms < :until_ms
  and (cast(:profile as text) is null or profile in (:profile, :profile_was, :profile_was_too))
  and (cast(:decided_by as text) is null or decided_by = :decided_by)
  and (cast(:key_id as text) is null or key_id = :key_id)
  and (cast(:routed as text) is null or replace(routes, :routed, '') <> routes)
  and (cast(:outcome as text) is null or outcome like :outcome)
  and (cast(:session as text) is null or session = :session)
  and (cast(:verdict as text) is null or cast(:verdict as text) = (
    select f.verdict from feedback f where f.tenant = decisions.tenant and f.decision_id = decisions.id
    order by f.id desc limit 1
  ))
  and (cast(:needle as text) is null or lower(question) like :needle escape '!')
order by id desc
limit :most
"""

# Oldest first, from above a given id: what a follower or an export reads.
DECISIONS_UP = """
select id, parent_id, tenant, session, profile, profile_hash, route, routes, confidence, decided_by,
  outcome, teacher, elapsed_us, created_ms, question, digest, kept, asked, body, key_id
from decisions
where tenant = :tenant
  and parent_id is null
  and id < :below
  and id > :above
  and created_ms >= :since_ms
  and created_ms < :until_ms
  and (cast(:profile as text) is null or profile in (:profile, :profile_was, :profile_was_too))
  and (cast(:decided_by as text) is null or decided_by = :decided_by)
  and (cast(:key_id as text) is null or key_id = :key_id)
  and (cast(:routed as text) is null or replace(routes, :routed, '') <> routes)
  and (cast(:outcome as text) is null or outcome like :outcome)
  and (cast(:session as text) is null or session = :session)
  and (cast(:verdict as text) is null or cast(:verdict as text) = (
    select f.verdict from feedback f where f.tenant = decisions.tenant and f.decision_id = decisions.id
    order by f.id desc limit 1
  ))
  and (cast(:needle as text) is null or lower(question) like :needle escape '!')
order by id
limit :most
"""

# How far back so many rows go: what is looked through at a time.
ID_BELOW = """
select id from decisions where tenant = :tenant and id < :below order by id desc limit 1 offset :most
"""

# Whose rows are read is asked first, so that an index that begins with the tenant serves the operator, too.
DECISIONS_IN_SESSION = """
with recursive whose(tenant) as (
  select min(tenant) from decisions where tenant = :tenant
  union all
  select (select min(d.tenant) from decisions d where d.tenant = :tenant and d.tenant > w.tenant)
  from whose w where not (w.tenant is null)
)
select d.id, d.parent_id, d.tenant, d.session, d.profile, d.profile_hash, d.route, d.routes, d.confidence, d.decided_by,
  d.outcome, d.teacher, d.elapsed_us, d.created_ms, d.question, d.digest, d.kept, d.asked, d.body, d.key_id
from whose w
cross join decisions d
where d.tenant = w.tenant
  and d.session = :session
  and d.parent_id is null
  and d.id < :below
  and d.id > :above
  and d.created_ms >= :since_ms
  and d.created_ms < :until_ms
  and (cast(:profile as text) is null or d.profile in (:profile, :profile_was, :profile_was_too))
  and (cast(:decided_by as text) is null or d.decided_by = :decided_by)
  and (cast(:key_id as text) is null or d.key_id = :key_id)
  and (cast(:routed as text) is null or replace(d.routes, :routed, '') <> d.routes)
  and (cast(:outcome as text) is null or d.outcome like :outcome)
  and (cast(:verdict as text) is null or cast(:verdict as text) = (
    select f.verdict from feedback f where f.tenant = d.tenant and f.decision_id = d.id
    order by f.id desc limit 1
  ))
  and (cast(:needle as text) is null or lower(d.question) like :needle escape '!')
order by d.id desc
limit :most
"""

# The last word counts.
DECISIONS_JUDGED = """
select d.id, d.parent_id, d.tenant, d.session, d.profile, d.profile_hash, d.route, d.routes, d.confidence, d.decided_by,
  d.outcome, d.teacher, d.elapsed_us, d.created_ms, d.question, d.digest, d.kept, d.asked, d.body, d.key_id
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
  and d.parent_id is null
  and d.id < :below
  and d.id > :above
  and d.created_ms >= :since_ms
  and d.created_ms < :until_ms
  and (cast(:profile as text) is null or d.profile in (:profile, :profile_was, :profile_was_too))
  and (cast(:decided_by as text) is null or d.decided_by = :decided_by)
  and (cast(:key_id as text) is null or d.key_id = :key_id)
  and (cast(:routed as text) is null or replace(d.routes, :routed, '') <> d.routes)
  and (cast(:outcome as text) is null or d.outcome like :outcome)
  and (cast(:needle as text) is null or lower(d.question) like :needle escape '!')
order by d.id desc
limit :most
"""

# The kinds there are, each found by a step from the one before it; then the rows of those that are wanted. SQLite steps
# along an index only to what is no column itself, hence the empty texts; `:last` is behind every id of a kind.
DECISIONS_OF_KIND = """
with recursive whose(tenant) as (
  select min(tenant) from decisions where tenant = :tenant
  union all
  select (select min(d.tenant) from decisions d where d.tenant = :tenant and d.tenant > w.tenant)
  from whose w where not (w.tenant is null)
),
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
select id, parent_id, tenant, session, profile, profile_hash, route, routes, confidence, decided_by,
  outcome, teacher, elapsed_us, created_ms, question, digest, kept, asked, body, key_id
from decisions
where tenant = :tenant
  and id in (
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
        and d.parent_id is null
        and d.id < :below
        and d.id > :above
        and d.created_ms >= :since_ms
        and d.created_ms < :until_ms
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
      where d.tenant = w.tenant
        and length(d.routes) > 200
        and d.parent_id is null
        and d.id < :below
        and d.id > :above
        and d.created_ms >= :since_ms
        and d.created_ms < :until_ms
        and (cast(:profile as text) is null or d.profile in (:profile, :profile_was, :profile_was_too))
        and (cast(:decided_by as text) is null or d.decided_by = :decided_by)
        and (cast(:key_id as text) is null or d.key_id = :key_id)
        and (cast(:routed as text) is null or replace(d.routes, :routed, '') <> d.routes)
        and (cast(:outcome as text) is null or d.outcome like :outcome)
      order by d.id desc
      limit :most
    ) as many
  )
order by id desc
limit :most
"""

# The kinds there are: what one may filter by.
DECISION_KINDS = """
with recursive whose(tenant) as (
  select min(tenant) from decisions where tenant = :tenant
  union all
  select (select min(d.tenant) from decisions d where d.tenant = :tenant and d.tenant > w.tenant)
  from whose w where not (w.tenant is null)
),
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
select distinct profile, routes, decided_by, outcome, key_id from kind limit :most
"""

"""Every statement the store runs, as constants. One text serves both databases.

Values are always parameters; a statement contains nothing but other constants of its file. Every read for a tenant has
`tenant = :tenant`, which a test checks in this file. The operator's statements have sections of their own. `cast(:x as
text) is null` is a filter that is not set, in both databases. A profile is also found by its former names.
"""

from __future__ import annotations

from .sql_cards import *  # noqa: F403
from .sql_list import *  # noqa: F403
from .sql_list import (
    DECISION_KINDS,
    DECISIONS_DOWN,
    DECISIONS_IN_SESSION,
    DECISIONS_JUDGED,
    DECISIONS_OF_KIND,
    DECISIONS_UP,
    ID_BELOW,
)
from .sql_search import *  # noqa: F403
from .sql_study import *  # noqa: F403
from .sql_traffic import *  # noqa: F403
from .sql_traffic import LOG_LATENCY, LOG_SPENT, LOG_TRAFFIC

# --- pieces of the statements below

_DECISION = """
  id, parent_id, tenant, session, profile, profile_hash, route, routes, confidence, decided_by, outcome, teacher,
  elapsed_us, created_ms, question, digest, kept, asked, body, key_id
"""

_OUTCOME = """
  decision_id, tenant, ended, slot, model, attempts, input_tokens, output_tokens, cost_usd, baseline_usd,
  classifier_usd, retrieval, fallback, cap_reached, elapsed_ms, sources, extra, created_ms
"""

_KEY = """
  id, digest, name, tenant, scopes, profiles, ceiling, may_force, budget_usd, per_minute, created_ms, expires_ms,
  revoked_ms, budget_day_usd, budget_month_usd
"""

# Questions of a span of time, not their parts.
_SPAN = """
  d.parent_id is null
  and d.id >= :first
  and d.created_ms >= :since_ms
  and d.created_ms < :until_ms
  and (cast(:profile as text) is null or d.profile in (:profile, :profile_was, :profile_was_too))
"""

_OF_KEY = """
  (cast(:key_id as text) is null or d.key_id = :key_id)
"""

# --- what the journal writes, its rows' fields in order; existing rows are not changed. JSON comes as bytes, which
# become text without being decoded.

ADD_PROFILE = """
insert into profiles (hash, name, resolved, created_ms, patterns)
values (?, ?, cast(? as text), ?, cast(? as text))
on conflict (hash) do update set patterns = excluded.patterns
where profiles.patterns is null and excluded.patterns is not null
"""

ADD_DECISION = f"""
insert into decisions ({_DECISION}) values (
  ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
  ?, ?, ?, ?, ?, ?, cast(? as text), cast(? as text), ?
)
on conflict do nothing
"""

ADD_OUTCOME = f"""
insert into outcomes ({_OUTCOME}) values (
  ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
  ?, ?, ?, ?, ?, cast(? as text), cast(? as text), ?
)
on conflict do nothing
"""

ADD_BREACH = """
insert into breaches (decision_id, tenant, profile, rule, fact, found, explanation, phase, created_ms)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict do nothing
"""

ADD_REPLY = """
insert into replies (id, tenant, session, decision_id, role, text, kept, created_ms)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict do nothing
"""

ADD_FEEDBACK = """
insert into feedback (id, decision_id, tenant, verdict, should_be, given_by, note, created_ms)
select :id, d.id, d.tenant, :verdict, :should_be, :given_by, :note, :created_ms
from decisions d
where d.tenant = :tenant and d.id = :decision_id
"""

# --- what a tenant may read

DECISION = f"""
select {_DECISION} from decisions
where tenant = :tenant and id = :id
"""

PARTS = f"""
select {_DECISION} from decisions
where tenant = :tenant and parent_id = :id
order by id
"""

LAST_DECISION = """
select max(id) from decisions where tenant = :tenant and parent_id is null
"""

IDS_LIKE = """
select id from decisions where tenant = :tenant and id >= :low and id < :high order by id limit 2
"""

# The ending has letters and digits only, none of which is special to `like`.
IDS_ENDING = """
select id from decisions where tenant = :tenant and id like :ending order by id desc limit 2
"""

PROFILE_OF = """
select p.resolved, p.patterns
from profiles p
where p.hash = :hash
  and exists (select 1 from decisions d where d.tenant = :tenant and d.profile_hash = p.hash)
"""

OUTCOME_OF = f"""
select {_OUTCOME} from outcomes
where tenant = :tenant and decision_id = :id
"""

FEEDBACK_OF = """
select id, decision_id, verdict, should_be, given_by, note, created_ms
from feedback
where tenant = :tenant and decision_id = :id
order by id
"""

BREACHES_OF = """
select decision_id, tenant, profile, rule, fact, found, explanation, phase, created_ms
from breaches
where tenant = :tenant and decision_id = :id
order by created_ms, rule, fact
"""

BREACHES = """
select decision_id, tenant, profile, rule, fact, found, explanation, phase, created_ms
from breaches
where tenant = :tenant
  and created_ms >= :since_ms
  and created_ms < :until_ms
  and (cast(:profile as text) is null or profile in (:profile, :profile_was, :profile_was_too))
  and (cast(:rule as text) is null or rule = :rule)
order by created_ms desc, decision_id desc, rule, fact
limit :most
"""

BREACH_COUNTS = """
select profile, rule, phase, count(*), min(created_ms), max(created_ms)
from breaches
where tenant = :tenant
  and created_ms >= :since_ms
  and created_ms < :until_ms
  and (cast(:profile as text) is null or profile in (:profile, :profile_was, :profile_was_too))
group by profile, rule, phase
order by profile, rule, phase
"""

CHECKED_COUNTS = f"""
select d.profile, d.profile_hash, count(*), count(o.decision_id)
from decisions d
left join outcomes o on o.decision_id = d.id and o.tenant = d.tenant
where d.tenant = :tenant
  and {_SPAN}
group by d.profile, d.profile_hash
order by d.profile, d.profile_hash
"""

TURNS = """
select role, text, kept, decision_id, created_ms
from (
  select id, role, text, kept, decision_id, created_ms
  from turns
  where tenant = :tenant and session = :session and id < :below
  order by id desc
  limit :most
) as latest
order by id
"""

INTENTS = """
select route, question, kept, id
from (
  select id, route, question, kept
  from decisions
  where tenant = :tenant and session = :session and parent_id is null and id < :below
  order by id desc
  limit :most
) as latest
order by id
"""

SESSIONS = """
select session, count(*), min(created_ms), max(created_ms)
from decisions
where tenant = :tenant and session is not null and parent_id is null and created_ms >= :since_ms
group by session
order by max(created_ms) desc, session
limit :most
"""

# Counts for a time span in buckets of :bucket_ms, which begin :shift_ms earlier than in UTC; the caller makes shares of
# them.
TRAFFIC = f"""
select (created_ms + :shift_ms) / :bucket_ms, profile, decided_by, outcome, route, count(*)
from decisions d
where d.tenant = :tenant and {_SPAN} and {_OF_KEY}
group by (created_ms + :shift_ms) / :bucket_ms, profile, decided_by, outcome, route
order by 1, 2, 3, 4, 5
"""

# The k-th fastest decision: percentiles without a function that only one database has.
LATENCY_AT = f"""
select elapsed_us
from decisions d
where d.tenant = :tenant and {_SPAN} and {_OF_KEY}
order by elapsed_us
limit 1 offset :place
"""

# Decisions for which a model may have been asked: those with its answer, and those with a layer that failed or was in
# doubt.
ASKED = f"""
select id, body
from decisions d
where d.tenant = :tenant and d.id > :above and {_SPAN} and {_OF_KEY}
  and (teacher is not null or outcome not like '_-')
order by id
limit :most
"""

# Savings count only answers whose cost and baseline are both known. Sums of integers are cast because PostgreSQL makes
# them decimals.
SPENT = f"""
select o.slot, o.model, o.ended, count(*), cast(sum(o.attempts) as bigint), cast(sum(o.input_tokens) as bigint),
  cast(sum(o.output_tokens) as bigint), sum(o.cost_usd), sum(o.classifier_usd),
  count(case when o.cost_usd is not null then o.baseline_usd end),
  sum(case when o.cost_usd is not null then o.baseline_usd end),
  sum(case when o.baseline_usd is not null then o.cost_usd + coalesce(o.classifier_usd, 0) end),
  count(o.fallback), count(o.cost_usd)
from outcomes o
join decisions d on d.id = o.decision_id and d.tenant = o.tenant
where o.tenant = :tenant
  and d.parent_id is null
  and o.decision_id >= :first
  and d.created_ms >= :since_ms
  and d.created_ms < :until_ms
  and (cast(:profile as text) is null or d.profile in (:profile, :profile_was, :profile_was_too))
  and {_OF_KEY}
group by o.slot, o.model, o.ended
order by coalesce(o.slot, ''), coalesce(o.model, ''), o.ended
"""

# The newest feedback on each decision beside the teacher's route.
LABELS = """
select d.id, d.session, d.profile, d.profile_hash, d.question, d.kept, d.route, d.confidence, d.decided_by, d.outcome,
  d.teacher, f.verdict, f.should_be, f.given_by, o.ended, o.slot, o.model, o.cost_usd, d.created_ms
from decisions d
left join feedback f on f.tenant = d.tenant and f.id = (
  select max(newest.id) from feedback newest where newest.tenant = d.tenant and newest.decision_id = d.id
)
left join outcomes o on o.tenant = d.tenant and o.decision_id = d.id
where d.tenant = :tenant
  and d.id > :above
  and d.created_ms >= :since_ms
  and d.created_ms < :until_ms
  and (cast(:profile as text) is null or d.profile in (:profile, :profile_was, :profile_was_too))
order by d.id
limit :most
"""

# --- the same reads for the operator, of all tenants: without the condition on the tenant, and with no other change

ALL_TENANTS = {
    statement: statement.replace("tenant = :tenant", "tenant is not null")
    for statement in (
        DECISION,
        DECISIONS_DOWN,
        DECISIONS_UP,
        DECISIONS_IN_SESSION,
        DECISIONS_JUDGED,
        DECISIONS_OF_KIND,
        DECISION_KINDS,
        ID_BELOW,
        LAST_DECISION,
        IDS_LIKE,
        IDS_ENDING,
        TRAFFIC,
        LATENCY_AT,
        ASKED,
        SPENT,
        LOG_TRAFFIC,
        LOG_LATENCY,
        LOG_SPENT,
    )
}

# --- the operator's own: tenants, settings, retention, copies. Not used for reads of a tenant.

TENANTS = """
select tenant, count(*) from decisions where parent_id is null group by tenant order by tenant
"""

SETTING = """
select setting from store_settings where name = :name
"""

ADD_SETTING = """
insert into store_settings (name, setting) values (:name, :setting) on conflict do nothing
"""

SET_SETTING = """
insert into store_settings (name, setting) values (?, ?) on conflict (name) do update set setting = excluded.setting
"""

# Retention works in steps of a thousand rows: a long delete would block the one writer for seconds. Ids begin with
# their time, so the primary key finds old rows without reading the others.
EDGE = """
select id from decisions where id < :before order by id limit 1 offset 999
"""

DELETE_OUTCOMES = """
delete from outcomes where decision_id < :before
"""

DELETE_FEEDBACK = """
delete from feedback where decision_id < :before
"""

DELETE_BREACHES = """
delete from breaches where decision_id < :before
"""

DELETE_DECISIONS = """
delete from decisions where id < :before
"""

DELETE_REPLIES = """
delete from replies where id in (
  select id from replies where id < :before order by id limit 1000
)
"""

TEXT_BEFORE = """
select id, body from decisions
where id > :above and id < :before and kept in ('snippet', 'full')
order by id
limit 1000
"""

FORGET_TEXT = """
update decisions
set question = null, asked = null, kept = case when digest is null then 'off' else 'hash' end, body = :body
where id = :id
"""

EXTRA_BETWEEN = """
select decision_id, extra from outcomes where decision_id >= :first and decision_id <= :last and extra is not null
"""

FORGET_EXTRA = """
update outcomes set extra = :extra where decision_id = :id
"""

FORGET_NOTES = """
update feedback set note = '' where decision_id < :before and note <> ''
"""

FORGET_REPLIES = """
update replies set text = null, kept = 'off' where id in (
  select id from replies where id < :before and kept in ('snippet', 'full') order by id limit 1000
)
"""

COUNTS = """
select
  (select count(*) from decisions where parent_id is null),
  (select count(*) from decisions where parent_id is not null),
  (select count(*) from outcomes),
  (select count(*) from feedback),
  (select count(*) from breaches),
  (select count(*) from replies),
  (select count(*) from profiles)
"""

# References between tables: parts need parents; outcomes, feedback and breaches need decisions; those need profiles.
STRAYS = """
select
  (select count(*) from decisions part where parent_id is not null and not exists (
    select 1 from decisions root where root.id = part.parent_id and root.tenant = part.tenant)),
  (select count(*) from outcomes o where not exists (
    select 1 from decisions d where d.id = o.decision_id and d.tenant = o.tenant)),
  (select count(*) from feedback f where not exists (
    select 1 from decisions d where d.id = f.decision_id and d.tenant = f.tenant)),
  (select count(*) from breaches b where not exists (
    select 1 from decisions d where d.id = b.decision_id and d.tenant = b.tenant)),
  (select count(*) from decisions d where not exists (select 1 from profiles p where p.hash = d.profile_hash))
"""

# --- a copy of the whole store: every table page by page, its columns in the order of the statement that adds them,
# which a test checks. Statements of a running server name their columns: a newer version may have added some.

ALL_SETTINGS = """
select * from store_settings where name > :above order by name limit :most
"""

ALL_PROFILES = """
select * from profiles where hash > :above order by hash limit :most
"""

ALL_DECISIONS = """
select * from decisions where id > :above order by id limit :most
"""

ALL_OUTCOMES = """
select * from outcomes where decision_id > :above order by decision_id limit :most
"""

ALL_FEEDBACK = """
select * from feedback where id > :above order by id limit :most
"""

# The only key of several columns: its parts are compared one after the other.
ALL_BREACHES = """
select * from breaches
where (decision_id, rule, fact, phase) > (:above, :above_rule, :above_fact, :above_phase)
order by decision_id, rule, fact, phase
limit :most
"""

ALL_REPLIES = """
select * from replies where id > :above order by id limit :most
"""

COPY_FEEDBACK = """
insert into feedback (id, decision_id, tenant, verdict, should_be, given_by, note, created_ms)
values (?, ?, ?, ?, ?, ?, ?, ?)
"""

POSTGRES_FACTS = """
select pg_database_size(current_database()), current_setting('server_version'),
  (select extversion from pg_extension where extname = 'vector')
"""

# --- migrations

SCHEMA_TABLE = """
create table if not exists schema_version (
  number integer primary key,
  name text not null,
  checksum text not null,
  applied_ms bigint not null
)
"""

APPLIED = """
select number, name, checksum from schema_version order by number
"""

ADD_APPLIED = """
insert into schema_version (number, name, checksum, applied_ms) values (:number, :name, :checksum, :applied_ms)
"""

# --- keys: the operator's

ANY_KEY = """
select 1 from keys limit 1
"""

KEY = f"""
select {_KEY} from keys
where id = :id
"""

KEYS = f"""
select {_KEY} from keys
order by created_ms, id
"""

ADD_KEY = f"""
insert into keys ({_KEY}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict do nothing
"""

ALL_KEYS = """
select * from keys where id > :above order by id limit :most
"""

ALL_SPENDING = """
select * from spending where decision_id > :above order by decision_id limit :most
"""

REVOKE_KEY = """
update keys set revoked_ms = :revoked_ms where id = :id and revoked_ms is null
"""

UPDATE_KEY = """
update keys
set name = :name, scopes = :scopes, profiles = :profiles, ceiling = :ceiling, may_force = :may_force,
  budget_usd = :budget_usd, budget_day_usd = :budget_day_usd, budget_month_usd = :budget_month_usd,
  per_minute = :per_minute, expires_ms = :expires_ms
where id = :id and revoked_ms is null
"""

# All of them or none: one that is still valid keeps them all.
DELETE_KEYS = """
delete from keys
where not exists (
  select 1 from keys valid
  where valid.revoked_ms is null and (valid.expires_ms is null or valid.expires_ms > :now_ms)
)
"""

# Keys that are their own tenant and have made a decision.
OWN_TENANTS = """
select id from keys where tenant = id and exists (select 1 from decisions d where d.tenant = keys.id) order by id
"""

SPENT_BY_KEY = """
select sum(amount_usd) from spending where key_id = :id and created_ms >= :since_ms
"""

# The cost of each key's decisions; of decisions without a key, the cost in their outcomes.
KEY_USE = f"""
select d.key_id, d.tenant, count(*), max(d.created_ms),
  sum(case when d.key_id <> '' then coalesce(s.amount_usd, 0) else o.cost_usd + coalesce(o.classifier_usd, 0) end)
from decisions d
left join spending s on s.decision_id = d.id
left join outcomes o on o.decision_id = d.id and o.tenant = d.tenant
where {_SPAN}
  and (cast(:tenant as text) is null or d.tenant = :tenant)
  and {_OF_KEY}
group by d.key_id, d.tenant
"""

ADD_SPENDING = """
insert into spending (decision_id, key_id, amount_usd, created_ms)
values (?, ?, ?, ?)
on conflict do nothing
"""

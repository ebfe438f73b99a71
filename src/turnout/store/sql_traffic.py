"""Statements about hourly traffic. The rules in `sql` apply.

The first three count the log itself, the next read hours that were counted before, for one key or for `*`.
"""

from __future__ import annotations

# --- pieces of the statements below

# Questions of a span of time in the log, not their parts.
_LOGGED = """
  parent_id is null
  and id >= :first
  and id < :last
  and (cast(:profile as text) is null or profile in (:profile, :profile_was, :profile_was_too))
  and (cast(:key_id as text) is null or key_id = :key_id)
"""

# Hours that were counted.
_COUNTED = """
  key_id = coalesce(cast(:key_id as text), '*')
  and hour_ms >= :from_ms
  and hour_ms < :to_ms
  and (cast(:profile as text) is null or profile in (:profile, :profile_was, :profile_was_too))
"""

# --- what a tenant may read

LOG_TRAFFIC = f"""
select tenant, (created_ms + :shift_ms) / :bucket_ms, key_id, profile, profile_hash, decided_by, outcome, route,
  count(*)
from decisions
where tenant = :tenant and {_LOGGED}
group by tenant, (created_ms + :shift_ms) / :bucket_ms, key_id, profile, profile_hash, decided_by, outcome, route
"""

# Times rounded down to two digits.
LOG_LATENCY = f"""
select tenant, key_id, profile, us, count(*)
from (
  select tenant, key_id, profile, case
    when elapsed_us < 100 then cast(elapsed_us as bigint)
    when elapsed_us < 1000 then cast(elapsed_us / 10 as bigint) * 10
    when elapsed_us < 10000 then cast(elapsed_us / 100 as bigint) * 100
    when elapsed_us < 100000 then cast(elapsed_us / 1000 as bigint) * 1000
    when elapsed_us < 1000000 then cast(elapsed_us / 10000 as bigint) * 10000
    else cast(elapsed_us / 100000 as bigint) * 100000 end as us
  from decisions
  where tenant = :tenant and {_LOGGED}
) as taken
group by tenant, key_id, profile, us
"""

# `extra` says whether the question was asked again with more context.
LOG_SPENT = """
select o.tenant, d.key_id, d.profile, d.profile_hash, o.slot, o.model, o.ended, count(*),
  cast(sum(o.attempts) as bigint), cast(sum(o.input_tokens) as bigint), cast(sum(o.output_tokens) as bigint),
  sum(o.cost_usd), sum(o.classifier_usd),
  count(case when o.cost_usd is not null then o.baseline_usd end),
  sum(case when o.cost_usd is not null then o.baseline_usd end),
  sum(case when o.baseline_usd is not null then o.cost_usd + coalesce(o.classifier_usd, 0) end),
  count(o.fallback), count(o.cost_usd),
  count(case when cast(o.extra as text) like :again then 1 end)
from outcomes o
join decisions d on d.id = o.decision_id and d.tenant = o.tenant
where o.tenant = :tenant
  and d.parent_id is null
  and o.decision_id >= :first
  and o.decision_id < :last
  and (cast(:profile as text) is null or d.profile in (:profile, :profile_was, :profile_was_too))
  and (cast(:key_id as text) is null or d.key_id = :key_id)
group by o.tenant, d.key_id, d.profile, d.profile_hash, o.slot, o.model, o.ended
"""

HOURS_TRAFFIC = f"""
select (hour_ms + :shift_ms) / :bucket_ms, profile, profile_hash, decided_by, outcome, route,
  cast(sum(decisions) as bigint)
from traffic_hours
where tenant = :tenant and {_COUNTED}
group by (hour_ms + :shift_ms) / :bucket_ms, profile, profile_hash, decided_by, outcome, route
"""

HOURS_LATENCY = f"""
select from_us, cast(sum(decisions) as bigint)
from latency_hours
where tenant = :tenant and {_COUNTED}
group by from_us
"""

HOURS_SPENT = f"""
select profile, profile_hash, slot, model, ended, cast(sum(answers) as bigint),
  cast(sum(attempts) as bigint), cast(sum(input_tokens) as bigint), cast(sum(output_tokens) as bigint),
  sum(cost_usd), sum(classifier_usd), cast(sum(compared) as bigint), sum(baseline_usd), sum(compared_usd),
  cast(sum(fallbacks) as bigint), cast(sum(priced) as bigint), cast(sum(regretted) as bigint)
from spent_hours
where tenant = :tenant and {_COUNTED}
group by profile, profile_hash, slot, model, ended
"""

HOURS_KEYS = """
select key_id, profile, cast(sum(decisions) as bigint), cast(sum(by_models) as bigint),
  cast(sum(fallbacks) as bigint), cast(sum(answers) as bigint), sum(cost_usd)
from key_hours
where tenant = :tenant
  and hour_ms >= :from_ms
  and hour_ms < :to_ms
  and (cast(:profile as text) is null or profile in (:profile, :profile_was, :profile_was_too))
  and (cast(:key_id as text) is null or key_id = :key_id)
group by key_id, profile
"""

# The latest feedback on each decision.
VERDICTS = """
select f.verdict, count(*)
from feedback f
join decisions d on d.id = f.decision_id and d.tenant = f.tenant
where f.tenant = :tenant
  and f.decision_id >= :first
  and f.decision_id < :last
  and f.id = (
    select max(newest.id) from feedback newest where newest.tenant = f.tenant and newest.decision_id = f.decision_id
  )
  and (cast(:profile as text) is null or d.profile in (:profile, :profile_was, :profile_was_too))
  and (cast(:key_id as text) is null or d.key_id = :key_id)
group by f.verdict
"""

# --- the operator's own: counting an hour, of all tenants

COUNTED_HOURS = """
select hour_ms, late, counted from counted_hours where hour_ms >= :from_ms and hour_ms < :to_ms order by hour_ms
"""

HOURS_OF_KEYS = """
select key_id, cast(sum(decisions) as bigint), sum(cost_usd)
from key_hours
where hour_ms >= :from_ms and hour_ms < :to_ms
group by key_id
"""

FIRST_FROM = """
select min(id) from decisions where id >= :first
"""

# Rows came for an hour that was over.
LATE_HOUR = """
insert into counted_hours (hour_ms, late, counted) values (:hour_ms, 1, 0)
on conflict (hour_ms) do update set late = counted_hours.late + 1
"""

# Only if nothing came late since it was looked at.
COUNT_HOUR = """
insert into counted_hours (hour_ms, late, counted) values (:hour_ms, :late, :late)
on conflict (hour_ms) do update set counted = excluded.counted where counted_hours.late = excluded.late
"""

FORGET_TRAFFIC = """
delete from traffic_hours where hour_ms >= :from_ms and hour_ms < :to_ms
"""

FORGET_LATENCY = """
delete from latency_hours where hour_ms >= :from_ms and hour_ms < :to_ms
"""

FORGET_SPENT = """
delete from spent_hours where hour_ms >= :from_ms and hour_ms < :to_ms
"""

FORGET_KEYS = """
delete from key_hours where hour_ms >= :from_ms and hour_ms < :to_ms
"""

FORGET_HOURS = """
delete from counted_hours where hour_ms >= :from_ms and hour_ms < :to_ms
"""

ADD_TRAFFIC_HOUR = """
insert into traffic_hours (hour_ms, tenant, key_id, profile, profile_hash, decided_by, outcome, route, decisions)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

ADD_KEY_HOUR = """
insert into key_hours (hour_ms, tenant, key_id, profile, decisions, by_models, fallbacks, answers, cost_usd)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

ADD_LATENCY_HOUR = """
insert into latency_hours (hour_ms, tenant, key_id, profile, from_us, decisions) values (?, ?, ?, ?, ?, ?)
"""

ADD_SPENT_HOUR = """
insert into spent_hours (
  hour_ms, tenant, key_id, profile, profile_hash, slot, model, ended, answers, attempts, input_tokens, output_tokens,
  cost_usd, classifier_usd, compared, baseline_usd, compared_usd, fallbacks, priced, regretted
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

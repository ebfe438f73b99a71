-- What a person reads with a database shell and nothing of ours: times as text, JSON taken apart, tables joined. A
-- reason whose sentence was not kept shows its code.

create view router_decisions as
select
  d.id,
  d.tenant,
  d.profile,
  d.question as question_text,
  o.extra ->> 'reformulated_question' as reformulated_question,
  o.extra ->> 'conversation_context' as conversation_context,
  d.route as mode_selected,
  o.extra ->> 'claim_cards_referenced' as claim_cards_referenced,
  o.extra ->> 'search_candidates' as search_candidates,
  (
    select string_agg(coalesce(nullif(reason ->> 'text', ''), reason ->> 'code'), '; ')
    from json_array_elements(d.body -> 'reasons') as reason
  ) as reasoning,
  coalesce(o.elapsed_ms, d.elapsed_us / 1000.0) as response_time,
  to_char(to_timestamp(d.created_ms / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at
from decisions d
left join outcomes o on o.decision_id = d.id
where d.parent_id is null;

create view traffic_by_layer as
select
  to_char(to_timestamp(created_ms / 1000) at time zone 'UTC', 'YYYY-MM-DD') as day,
  tenant,
  profile,
  decided_by as layer,
  substr(outcome, 1, 1) as who,
  count(*) as decisions,
  round(100.0 * count(*) / sum(count(*)) over (
    partition by to_char(to_timestamp(created_ms / 1000) at time zone 'UTC', 'YYYY-MM-DD'), tenant, profile
  ), 1) as percent,
  round(avg(elapsed_us)::numeric, 1) as mean_us
from decisions
where parent_id is null
group by day, tenant, profile, decided_by, who
order by day, tenant, profile, decisions desc;

create view violations as
select
  to_char(to_timestamp(b.created_ms / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as noticed_at,
  b.tenant,
  b.profile,
  b.rule,
  b.fact,
  b.found,
  b.explanation,
  b.phase,
  b.decision_id,
  d.route,
  d.decided_by,
  d.question
from breaches b
left join decisions d on d.id = b.decision_id;

create view turns as
select id, tenant, session, 'user' as role, question as text, kept, id as decision_id, created_ms
from decisions
where session is not null and parent_id is null
union all
select id, tenant, session, role, text, kept, decision_id, created_ms
from replies;

create view classify_history as
select
  d.tenant,
  d.session,
  d.id as decision_id,
  d.route,
  substr(d.question, 1, 60) as topic,
  d.question,
  d.teacher,
  (
    select case f.verdict when 'right' then d.route else f.should_be end
    from feedback f
    where f.decision_id = d.id and f.tenant = d.tenant
    order by f.id desc
    limit 1
  ) as human,
  to_char(to_timestamp(d.created_ms / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at
from decisions d
where d.session is not null and d.parent_id is null;

-- Decisions know the key that asked for them, and a key may have a budget for a day and for a month. A key made without
-- a tenant is its own tenant: what it wrote, as far as its spending tells, moves there with all that belongs to it. What
-- no spending names stays where it is, with rows that no key wrote: the operator reads those, and no key does.

alter table keys add column budget_day_usd double precision;

alter table keys add column budget_month_usd double precision;

alter table decisions add column key_id text not null default '';

drop index spending_by_key;

create index spending_by_key on spending (key_id, created_ms);

update decisions set key_id = (
  select s.key_id from spending s where s.decision_id = coalesce(decisions.parent_id, decisions.id)
)
where exists (select 1 from spending s where s.decision_id = coalesce(decisions.parent_id, decisions.id));

update decisions set tenant = key_id where tenant = '' and key_id <> '';

update outcomes set tenant = (select d.tenant from decisions d where d.id = outcomes.decision_id)
where tenant = ''
  and exists (select 1 from decisions d where d.id = outcomes.decision_id and d.key_id <> '');

update feedback set tenant = (select d.tenant from decisions d where d.id = feedback.decision_id)
where tenant = ''
  and exists (select 1 from decisions d where d.id = feedback.decision_id and d.key_id <> '');

update breaches set tenant = (select d.tenant from decisions d where d.id = breaches.decision_id)
where tenant = ''
  and exists (select 1 from decisions d where d.id = breaches.decision_id and d.key_id <> '');

update replies set tenant = (select d.tenant from decisions d where d.id = replies.decision_id)
where tenant = ''
  and exists (select 1 from decisions d where d.id = replies.decision_id and d.key_id <> '');

update keys set tenant = id where tenant = '';

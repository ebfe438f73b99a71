-- Keys for a server that others can reach, and what each has spent. A key's secret is not here: only a digest of it,
-- keyed with something that is not here either. Spending is one row for each decision, so that a row which is replayed
-- after a crash is not spent twice.

create table keys (
  id text primary key,
  digest text not null,
  name text not null,
  tenant text not null,
  scopes text not null,
  profiles text,
  ceiling text,
  may_force boolean not null,
  budget_usd double precision,
  per_minute bigint,
  created_ms bigint not null,
  expires_ms bigint,
  revoked_ms bigint
);

create table spending (
  decision_id text primary key,
  key_id text not null,
  amount_usd double precision not null,
  created_ms bigint not null
);

create index spending_by_key on spending (key_id);

-- Decisions and what belongs to them. Every row has its tenant, and every index but the primary keys begins with it:
-- no read may do without it. Times are milliseconds since 1970 because both databases compare them alike; the views
-- show them as people write them. The type names are PostgreSQL's, and SQLite takes its affinities from them.

create table store_settings (
  name text primary key,
  setting text not null
);

create table profiles (
  hash text primary key,
  name text not null,
  resolved json not null,
  created_ms bigint not null
);

create table decisions (
  id text primary key,
  parent_id text,
  tenant text not null,
  session text,
  profile text not null,
  profile_hash text not null,
  route text not null,
  routes text not null,
  confidence double precision not null,
  decided_by text not null,
  outcome text not null,
  teacher text,
  elapsed_us double precision not null,
  created_ms bigint not null,
  question text,
  digest text,
  kept text not null,
  asked json,
  body json not null
);

create index decisions_by_tenant on decisions (tenant, id);

create index decisions_by_session on decisions (tenant, session, id) where session is not null;

create index decisions_by_parent on decisions (tenant, parent_id, id) where parent_id is not null;

create table outcomes (
  decision_id text primary key,
  tenant text not null,
  ended text not null,
  slot text,
  model text,
  attempts bigint,
  input_tokens bigint,
  output_tokens bigint,
  cost_usd double precision,
  baseline_usd double precision,
  classifier_usd double precision,
  retrieval boolean,
  fallback text,
  cap_reached text,
  elapsed_ms double precision,
  sources json,
  extra json,
  created_ms bigint not null
);

create index outcomes_by_tenant on outcomes (tenant, decision_id);

create table feedback (
  id text primary key,
  decision_id text not null,
  tenant text not null,
  verdict text not null,
  should_be text,
  given_by text not null,
  note text not null,
  created_ms bigint not null
);

create index feedback_by_decision on feedback (tenant, decision_id, id);

create table breaches (
  decision_id text not null,
  tenant text not null,
  profile text not null,
  rule text not null,
  fact text not null,
  found text not null,
  explanation text not null,
  phase text not null,
  created_ms bigint not null,
  primary key (decision_id, rule, fact, phase)
);

create index breaches_by_tenant on breaches (tenant, created_ms);

create table replies (
  id text primary key,
  tenant text not null,
  session text not null,
  decision_id text,
  role text not null,
  text text,
  kept text not null,
  created_ms bigint not null
);

create index replies_by_session on replies (tenant, session, id);

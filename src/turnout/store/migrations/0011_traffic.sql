-- Months of traffic are looked at in a moment: decisions, how long they took and what they cost, counted hour by hour once
-- the hour is over. Everything here can be counted again from the log, and is, where a row came late: an hour counts while
-- what was counted of it (counted) is as much as what came (late). All keys together are the key '*'.

create table counted_hours (
  hour_ms bigint primary key,
  late bigint not null,
  counted bigint not null
);

create table traffic_hours (
  tenant text not null,
  hour_ms bigint not null,
  key_id text not null,
  profile text not null,
  profile_hash text not null,
  decided_by text not null,
  outcome text not null,
  route text not null,
  decisions bigint not null
);

create index traffic_hours_by_key on traffic_hours (tenant, key_id, hour_ms);

create table latency_hours (
  tenant text not null,
  hour_ms bigint not null,
  key_id text not null,
  profile text not null,
  from_us bigint not null,
  decisions bigint not null
);

create index latency_hours_by_key on latency_hours (tenant, key_id, hour_ms);

create table spent_hours (
  tenant text not null,
  hour_ms bigint not null,
  key_id text not null,
  profile text not null,
  profile_hash text not null,
  slot text,
  model text,
  ended text not null,
  answers bigint not null,
  attempts bigint,
  input_tokens bigint,
  output_tokens bigint,
  cost_usd double precision,
  classifier_usd double precision,
  compared bigint not null,
  baseline_usd double precision,
  compared_usd double precision,
  fallbacks bigint not null,
  priced bigint not null,
  regretted bigint not null
);

create index spent_hours_by_key on spent_hours (tenant, key_id, hour_ms);

create table key_hours (
  tenant text not null,
  hour_ms bigint not null,
  key_id text not null,
  profile text not null,
  decisions bigint not null,
  by_models bigint not null,
  fallbacks bigint not null,
  answers bigint not null,
  cost_usd double precision
);

create index key_hours_by_tenant on key_hours (tenant, hour_ms);

create index key_hours_by_hour on key_hours (hour_ms);

create index traffic_hours_by_hour on traffic_hours (hour_ms);

create index latency_hours_by_hour on latency_hours (hour_ms);

create index spent_hours_by_hour on spent_hours (hour_ms);

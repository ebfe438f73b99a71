-- What sources answered and which were chosen, as long as it is fresh: a restart does not ask everything again. An id is
-- a keyed digest of the question and whom it was put to, so the table cannot be searched for what somebody asked.

create table cache_entries (
  id text primary key,
  space text not null,
  tenant text not null,
  entry text not null,
  created_ms bigint not null,
  expires_ms bigint not null
);

create index cache_entries_by_age on cache_entries (space, created_ms);

create index cache_entries_by_tenant on cache_entries (tenant, space);

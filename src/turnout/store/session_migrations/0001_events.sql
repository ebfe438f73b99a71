-- What happens in a session, in order: whoever connects late, or to another worker, is told everything from the
-- beginning. `last` is counted in a row of its own, which a writer locks: numbers have no gaps. An event with a key is
-- kept once, however often a resumed process tells it.

create table sessions (
  tenant text not null,
  session text not null,
  last bigint not null,
  primary key (tenant, session)
);

create table events (
  tenant text not null,
  session text not null,
  sequence bigint not null,
  once text not null,
  body text not null,
  at_ms bigint not null,
  primary key (tenant, session, sequence)
);

create unique index events_once on events (tenant, session, once) where once <> '';

create index events_by_age on events (at_ms);

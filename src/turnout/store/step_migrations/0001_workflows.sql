-- Workflows whose steps are kept one by one: a process that takes one up finds what was done, and does the rest. The
-- worker is the process that runs it. A workflow without an end is unfinished.

create table workflows (
  id text not null primary key,
  worker text not null,
  task text not null,
  outcome text,
  at_ms bigint not null
);

create table steps (
  workflow text not null references workflows (id) on delete cascade,
  name text not null,
  result text not null,
  primary key (workflow, name)
);

create index workflows_unfinished on workflows (worker) where outcome is null;

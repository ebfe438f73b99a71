-- What a reader studied: sessions with their turns, in the reader's own words, and a summary of each that has ended. They
-- are what the assistant remembers, so they are kept apart from the log and are the reader's to forget.

create table study_sessions (
  id text primary key,
  tenant text not null,
  name text not null,
  started_ms bigint not null,
  last_ms bigint not null,
  ended_ms bigint,
  summary text
);

create index study_sessions_by_name on study_sessions (tenant, name, id);

create table study_turns (
  id text primary key,
  tenant text not null,
  session_id text not null,
  question text not null,
  answer text not null,
  route text not null,
  created_ms bigint not null
);

create index study_turns_by_session on study_turns (tenant, session_id, id);

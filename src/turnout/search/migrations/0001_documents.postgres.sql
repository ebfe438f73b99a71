-- Documents, the passages they are cut into, and what is searched by: stems (full text). `attributes` is what filters ask,
-- a row for each value. Vectors have a table of their own, made where the server has pgvector. All of it is in a schema
-- that belongs to one index.

create table settings (
  name text primary key,
  setting text not null
);

create table documents (
  key bigint generated always as identity primary key,
  id text not null unique,
  title text not null,
  lang text not null,
  attributes text not null,
  updated_ms bigint,
  hash text not null
);

create table attributes (
  document bigint not null,
  name text not null,
  value text not null,
  primary key (document, name, value)
);

create table passages (
  key bigint generated always as identity primary key,
  document bigint not null,
  start bigint not null,
  text text not null,
  length bigint not null,
  stems tsvector
);

create index passages_by_document on passages (document);

create index passages_by_stem on passages using gin (stems);

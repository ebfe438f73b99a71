-- Documents, the passages they are cut into, and what is searched by: stems (full text) and vectors. `attributes` is what
-- filters ask, a row for each value. Keys are never used twice, so that whoever keeps one knows when it is gone.

create table settings (
  name text primary key,
  setting text not null
);

create table documents (
  key integer primary key autoincrement,
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
) without rowid;

create table passages (
  key integer primary key autoincrement,
  document bigint not null,
  start bigint not null,
  text text not null,
  length bigint not null
);

create index passages_by_document on passages (document);

-- The stems come separated by spaces; this tokenizer leaves all that is not ASCII as it is.
create virtual table postings using fts5 (stems, tokenize = 'ascii');

create virtual table vocabulary using fts5vocab (postings, row);

create table vectors (
  passage integer primary key,
  embedder text not null,
  vector blob not null
);

-- Which files a folder's documents were read from: what has not changed since is not read again, also by the next
-- process. `documents` are the ids (a JSON list) that go when the file goes; `problem` is why it could not be read.

create table files (
  folder text not null,
  path text not null,
  changed_ns bigint not null,
  size bigint not null,
  documents text not null,
  problem text not null,
  primary key (folder, path)
);

"""Statements that both databases understand. Values are always parameters.

Statements that differ (full text, vectors, JSON) are beside the class that runs them.
"""

from __future__ import annotations

SETTING = """
select setting from settings where name = :name
"""

SET = """
insert into settings (name, setting) values (:name, :setting)
on conflict (name) do update set setting = excluded.setting
"""

# Locks the row until the transaction ends, so that writers take turns, across processes too.
NEXT_REVISION = """
insert into settings (name, setting) values ('revision', '1')
on conflict (name) do update set setting = cast(cast(settings.setting as bigint) + 1 as text)
"""

SIZES = """
select count(*), coalesce(avg(length), 0) from passages
"""

LANGUAGES = """
select lang from documents where lang <> '' group by lang order by count(*) desc, lang
"""

COUNT = """
select count(*) from documents
"""

IDS = """
select id from documents order by id
"""

FIND = """
select key, hash, title, lang, updated_ms from documents where id = :id
"""

TOUCH = """
update documents set updated_ms = :updated_ms where key = :key
"""

ADD_DOCUMENT = """
insert into documents (id, title, lang, attributes, updated_ms, hash)
values (:id, :title, :lang, :attributes, :updated_ms, :hash)
returning key
"""

CHANGE_DOCUMENT = """
update documents
set title = :title, lang = :lang, attributes = :attributes, updated_ms = :updated_ms, hash = :hash
where key = :key
"""

DELETE_DOCUMENT = """
delete from documents where key = :key
"""

ADD_ATTRIBUTE = """
insert into attributes (document, name, value) values (?, ?, ?)
"""

DELETE_ATTRIBUTES = """
delete from attributes where document = :key
"""

PASSAGES_OF = """
select key, text from passages where document = :key order by start
"""

ADD_PASSAGE = """
insert into passages (document, start, text, length) values (:document, :start, :text, :length)
returning key
"""

MOVE_PASSAGE = """
update passages set start = :start where key = :key
"""

DELETE_PASSAGE = """
delete from passages where key = :key
"""

ALL_PASSAGES = """
select p.key, d.title, d.lang, p.text from passages p join documents d on d.key = p.document
where p.key > :after order by p.key limit :limit
"""

SET_LENGTH = """
update passages set length = :length where key = :key
"""

LAST_PASSAGE = """
select coalesce(max(key), 0) from passages
"""

DELETE_VECTOR = """
delete from vectors where passage = :key
"""

HAS_VECTORS = """
select 1 from vectors where embedder = :embedder limit 1
"""

FILES = """
select path, changed_ns, size, documents, problem from files where folder = :folder order by path
"""

SET_FILE = """
insert into files (folder, path, changed_ns, size, documents, problem)
values (:folder, :path, :changed_ns, :size, :documents, :problem)
on conflict (folder, path) do update set
  changed_ns = excluded.changed_ns, size = excluded.size, documents = excluded.documents, problem = excluded.problem
"""

DELETE_FILE = """
delete from files where folder = :folder and path = :path
"""

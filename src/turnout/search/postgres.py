"""The index in PostgreSQL: `tsvector` for words, pgvector for vectors. Each index has a schema of its own, so that no
statement can reach another's documents, and word frequencies are those of its own texts.

PostgreSQL gets finished stems, so that neither its dictionaries nor its locale matter.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from turnout.core.errors import StoreError
from turnout.store.backend import Transaction, Values
from turnout.store.postgres import PostgresSchema

from . import sql
from .document import to_json
from .tables import COLUMNS, MEAN, IndexCandidate, Tables

# PostgreSQL keeps 256 positions of a word, numbered up to this; a passage has a few hundred words.
POSITIONS = 256
LAST_POSITION = 16_383
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")

_FILTERS = """
  (cast(:langs as text) is null or d.lang in (select json_array_elements_text(cast(:langs as json))))
  and (cast(:since as bigint) is null or d.updated_ms >= :since)
  and (cast(:until as bigint) is null or d.updated_ms < :until)
  and not exists (
    select 1 from json_each(cast(:attributes as json)) f where not exists (
      select 1 from attributes a
      where a.document = d.key and a.name = f.key and a.value in (select json_array_elements_text(f.value))
    )
  )
"""
# `ts_rank` of a single word grows with its count and levels off, as in BM25. It ignores how rare the word is, hence the
# weights, and how long the passage is, hence the divisor: BM25's for a word that occurs once.
PROPOSE = f"""
with asked as (
  select cast('''' || stem || '''' as tsquery) as query, weight
  from json_to_recordset(cast(:weights as json)) as given(stem text, weight double precision)
)
select {COLUMNS} from passages p join documents d on d.key = p.document
where p.stems @@ cast(:query as tsquery) and {_FILTERS}
order by (select sum(weight * ts_rank('{{1,1,1,1}}', p.stems, query)) from asked)
  / (0.6 + 0.4 * p.length / cast(:average as double precision)) desc, p.key
limit :limit
"""  # noqa: S608 - of constants
FREQUENCIES = """
select value, (select count(*) from passages p where p.stems @@ cast('''' || value || '''' as tsquery))
from json_array_elements_text(cast(:stems as json))
"""
SET_STEMS = """
update passages set stems = cast(:stems as tsvector) where key = :key
"""
HAS_TABLE = """
select to_regclass(quote_ident(current_schema()) || '.vectors') is not null
"""
CREATE_VECTORS = """
create table if not exists vectors (
  passage bigint not null,
  part bigint not null default 0,
  embedder text not null,
  vector vector not null,
  primary key (passage, part)
)
"""
# For tables made when a passage had a single vector.
WIDEN_VECTORS = """
do $$ begin
  if not exists (
    select 1 from information_schema.columns
    where table_schema = current_schema() and table_name = 'vectors' and column_name = 'part'
  ) then
    alter table vectors add column part bigint not null default 0;
    alter table vectors drop constraint vectors_pkey;
    alter table vectors add primary key (passage, part);
  end if;
end $$
"""
ADD_VECTOR = """
insert into vectors (passage, part, embedder, vector) values (:key, :part, :embedder, cast(:vector as vector))
"""
WITHOUT_VECTOR = """
select p.key, d.title, p.text from passages p join documents d on d.key = p.document
where p.key > :after and d.lang in (select json_array_elements_text(cast(:langs as json)))
  and not exists (select 1 from vectors v where v.passage = p.key and v.embedder = :embedder)
order by p.key limit :limit
"""
# The distance of a zero vector (of a blank text) is NaN.
NEAREST = f"""
with near as (
  select passage, min(away) + cast(:mean as double precision) * (avg(away) - min(away)) as distance
  from (select passage, vector <=> cast(:vector as vector) as away from vectors where embedder = :embedder) as windows
  group by passage
)
select {COLUMNS}, 1 - near.distance as nearness
from near join passages p on p.key = near.passage join documents d on d.key = p.document
where {_FILTERS}
order by near.distance, p.key
limit :limit
"""  # noqa: S608 - of constants


class IndexSchema(PostgresSchema):
    steps = "turnout.search.migrations"

    def __init__(self, url: str, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a name of an index: up to 41 of a-z, 0-9 and _, a letter first")
        super().__init__(url, f"search_{name}")

    def _add_vectors(self) -> None:
        """Install pgvector in `public`, where every index finds it. A server without it is searched by words alone."""
        with contextlib.suppress(StoreError), self.transaction() as changes:
            changes.connection.execute("create extension if not exists vector schema public")
        with contextlib.suppress(StoreError), self.transaction() as changes:
            changes.change(CREATE_VECTORS, {})
            changes.connection.execute(WIDEN_VECTORS)


class PostgresTables(Tables):
    def __init__(self, url: str, name: str) -> None:
        self.backend = IndexSchema(url, name)

    @property
    def vectors(self) -> bool:  # type: ignore[override]
        if not self._has_vectors:
            self._has_vectors = bool(self.backend.read(HAS_TABLE, {})[0][0])
        return self._has_vectors

    _has_vectors = False

    def set_stems(self, changes: Transaction, key: int, stems: Sequence[str]) -> None:
        positions: dict[str, list[str]] = {}
        for place, stem in enumerate(stems, 1):
            if len(places := positions.setdefault(stem, [])) < POSITIONS:
                places.append(str(min(place, LAST_POSITION)))
        vector = " ".join(f"'{stem}':{','.join(places)}" for stem, places in positions.items())
        changes.change(SET_STEMS, {"key": key, "stems": vector})

    def frequencies(self, reads: Transaction, stems: Sequence[str]) -> dict[str, int]:
        return dict(reads.read(FREQUENCIES, {"stems": to_json(stems)}))

    def propose(
        self, reads: Transaction, weights: Mapping[str, float], average: float, filters: Values, limit: int
    ) -> list[IndexCandidate]:
        values: Values = {
            "query": " | ".join(f"'{stem}'" for stem in weights),
            "weights": to_json([{"stem": stem, "weight": weight} for stem, weight in weights.items()]),
            "average": average,
            "limit": limit,
            **filters,
        }
        return [IndexCandidate(*row) for row in reads.read(PROPOSE, values)]

    def set_vectors(self, changes: Transaction, key: int, embedder: str, vectors: Sequence[Any]) -> None:
        changes.change(sql.DELETE_VECTOR, {"key": key})
        for part, vector in enumerate(vectors):
            values: Values = {"key": key, "part": part, "embedder": embedder, "vector": to_json(vector.tolist())}
            changes.change(ADD_VECTOR, values)

    def without_vector(
        self, reads: Transaction, embedder: str, langs: Sequence[str], after: int, limit: int
    ) -> list[tuple[int, str, str]]:
        values: Values = {"embedder": embedder, "langs": to_json(langs), "after": after, "limit": limit}
        return [(key, title, text) for key, title, text in reads.read(WITHOUT_VECTOR, values)]

    def nearest(
        self, reads: Transaction, revision: str, embedder: str, vector: Any, filters: Values, limit: int
    ) -> list[tuple[IndexCandidate, float]]:
        values: Values = {"embedder": embedder, "vector": to_json(vector.tolist()), "mean": MEAN, "limit": limit}
        near = ((IndexCandidate(*row[:-1]), float(row[-1])) for row in reads.read(NEAREST, {**values, **filters}))
        return [(one, cosine) for one, cosine in near if cosine == cosine]  # noqa: PLR0124 - not a number

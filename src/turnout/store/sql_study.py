"""Statements about study sessions. The rules in `sql` apply."""

from __future__ import annotations

# --- what a tenant may read

OPEN_SESSION = """
select id, name, started_ms, last_ms, ended_ms, summary from study_sessions
where tenant = :tenant and name = :name and ended_ms is null
order by id desc limit 1
"""

IDLE_SESSIONS = """
select id, name, started_ms, last_ms, ended_ms, summary from study_sessions
where tenant = :tenant and ended_ms is null and last_ms < :before_ms
order by id
"""

ENDED_SESSIONS = """
select id, name, started_ms, last_ms, ended_ms, summary from study_sessions
where tenant = :tenant and ended_ms is not null
order by id desc
"""

SESSION_TURNS = """
select id, question, answer, route, created_ms from study_turns
where tenant = :tenant and session_id = :session_id
order by id
"""

# --- what is written

ADD_SESSION = """
insert into study_sessions (id, tenant, name, started_ms, last_ms, ended_ms, summary)
values (?, ?, ?, ?, ?, ?, ?)
"""

ADD_TURN = """
insert into study_turns (id, tenant, session_id, question, answer, route, created_ms)
values (?, ?, ?, ?, ?, ?, ?)
on conflict (id) do nothing
"""

TOUCH_SESSION = """
update study_sessions set last_ms = :last_ms where tenant = :tenant and id = :id
"""

# Only once: of two processes that end a session, one writes its summary.
END_SESSION = """
update study_sessions set ended_ms = :ended_ms, summary = :summary
where tenant = :tenant and id = :id and ended_ms is null
"""

SET_SUMMARY = """
update study_sessions set summary = :summary
where tenant = :tenant and id = :id and ended_ms is not null
"""

FORGET_TURNS = """
delete from study_turns where tenant = :tenant and session_id = :id
"""

FORGET_SESSION = """
delete from study_sessions where tenant = :tenant and id = :id
"""

# --- retention, of all tenants

OLD_SESSIONS = """
select tenant, id from study_sessions
where id < :before and last_ms < :before_ms
order by id limit 1000
"""

# --- for copies of the whole store

ALL_STUDY_SESSIONS = """
select id, tenant, name, started_ms, last_ms, ended_ms, summary from study_sessions
where id > :above
order by id
limit :most
"""

ALL_STUDY_TURNS = """
select id, tenant, session_id, question, answer, route, created_ms from study_turns
where id > :above
order by id
limit :most
"""

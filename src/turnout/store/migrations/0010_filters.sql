-- A log of millions is looked through by key, profile, routes, layer and outcome, in any combination. There are few
-- combinations: a reader hops from one to the next along this index, keeps those that are wanted, and reads no other row.
-- A list of routes that is too long for PostgreSQL to index has an index of its own.

create index decisions_by_kind
on decisions (tenant, key_id, profile, routes, decided_by, outcome, id, created_ms)
where parent_id is null and length(routes) <= 200;

create index decisions_of_many_routes on decisions (tenant, id) where parent_id is null and length(routes) > 200;

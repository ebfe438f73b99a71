-- Rows that still have text, oldest first: retention finds the few it must empty without a look at all it has emptied
-- before. A row leaves the index when its text goes.

create index decisions_with_text on decisions (id) where kept in ('snippet', 'full');

create index replies_with_text on replies (id) where kept in ('snippet', 'full');

-- A decision names the patterns that were found in its question by their numbers. What the numbers mean is kept with its
-- profile, once, so that a row can be drawn without building the profile again. A profile that is here already gets its
-- patterns with the next decision made with it.

alter table profiles add column patterns json;

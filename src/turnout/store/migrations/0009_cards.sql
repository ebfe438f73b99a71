-- Claim cards: what was claimed and what its audit found. The columns are what lists ask about; the body is the card, as
-- JSON. `indexed` is false from the moment a card changes until the search index has it, so that a process that was
-- killed in between leaves a card that the next one indexes.

create table claim_cards (
  id text primary key,
  claim_text text not null,
  claim_type text not null,
  verdict text not null,
  twin_of text not null,
  visible boolean not null,
  indexed boolean not null,
  created_ms bigint not null,
  body text not null
);

create index claim_cards_by_age on claim_cards (created_ms, id);

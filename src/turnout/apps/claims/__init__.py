"""An audited card, a synthesis of cards, or a new audit."""

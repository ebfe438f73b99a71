"""Language models: slots and what fills them, what they cost, how a classifier is asked, and one that needs no key."""

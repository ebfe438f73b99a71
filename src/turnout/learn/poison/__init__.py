"""Against poisoning: users write training rows by asking questions, and must not be able to decide what is learnt.

Three defences, in this order. `screen` bounds what one sender may add and sets aside rows with words that look planted;
it runs before every training. `probe` puts suspicious words into questions they have nothing to do with, and sees
whether the trained model follows; it is one of the checks of a promotion. `word` is what both count by.
"""

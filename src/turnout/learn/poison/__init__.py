"""Defences against poisoning: users write training rows by asking questions, and must not control what is learnt.

`screen` runs before every training: it limits what one sender may add and quarantines rows with words that look
planted, which `trigger` finds. `probe` is a check of a promotion: it puts suspicious words into unrelated questions and
tests whether the model follows them.
"""

"""One question box over everything one runs: who answers this question, and what did they say?"""

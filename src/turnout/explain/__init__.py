"""A decision as something to look at: values that a terminal, a page or a program shows. Nothing is drawn here."""

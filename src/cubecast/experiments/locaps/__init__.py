"""LoCaPS beside Delta and Gryphon: how long a subscription takes to begin (F. Pedrosa's thesis, chapter 6)."""

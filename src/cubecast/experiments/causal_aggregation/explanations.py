"""Why some claims of the chapter are outside their tolerance, claim by claim."""

EXPLANATIONS: dict[str, str] = {}

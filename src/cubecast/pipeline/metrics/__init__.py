"""What a trace says about cost and speed: plain DataFrame → DataFrame functions, one file per theme."""

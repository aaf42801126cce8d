"""VCube-PS against single-rooted trees: thesis 2019, §5.6.2 and §5.6.3."""

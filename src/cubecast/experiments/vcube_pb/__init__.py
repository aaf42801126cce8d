"""VCube-PB against a fixed tree: de Araujo et al., SBRC 2017, §6."""

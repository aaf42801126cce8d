"""Chapter 4 of the thesis (de Araujo, 2019) and its Figure 3.1: causal aggregation broadcast, table by table."""

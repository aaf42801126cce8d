"""Live runs on this machine: members in processes of their own, told what to do and observed line by line."""

"""Who may connect, who they are, and what they may do. Nothing here costs anything while it is switched off."""

"""Broker networks: a tree of brokers that route messages by their content (LoCaMu and LoCaPS)."""

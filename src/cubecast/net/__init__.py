"""The live driver: protocol machines on asyncio and TCP."""

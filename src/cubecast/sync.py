"""The interface for programs without an event loop: `cubecast.sync.connect`."""

from cubecast.api.sync import SyncClient as SyncClient
from cubecast.api.sync import SyncService as SyncService
from cubecast.api.sync import SyncSubscription as SyncSubscription
from cubecast.api.sync import connect as connect

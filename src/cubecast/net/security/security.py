"""Everything about security that one node has, in one place for its doors."""

import logging

from cubecast.errors import BadInput
from cubecast.net.config import NodeConfig
from cubecast.net.security.policy import OPEN, Policy

log = logging.getLogger(__name__)


class Security:
    """`security.policy.authenticate(credentials)` gives a principal; `principal.may(action, topic)` decides."""

    def __init__(self, config: NodeConfig) -> None:
        self._config = config
        self.policy = self._load_policy()

    def reload(self) -> bool:
        """Read the files again. A file that is wrong changes nothing: what was good before stays in force."""
        try:
            self.policy = self._load_policy()
        except BadInput as error:
            log.error("security is as it was, because of what it should become: %s", error)
            return False
        return True

    def _load_policy(self) -> Policy:
        path = self._config.policy
        if path is None:
            return OPEN
        from cubecast.net.security.policy_file import load_policy  # brings a library along that others do without

        return load_policy(path, self._config.cluster)

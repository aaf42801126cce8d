"""What a node keeps is for nobody else on its machine, and it says so where that is not the case."""

import os
import stat

from cubecast.net.members.memory import claim
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.security import TlsSettings, exposures


def test_a_data_directory_is_made_for_its_owner_alone(tmp_path):
    before = os.umask(0o022)
    try:
        config = NodeConfig(data=tmp_path / "below" / "data")
        claim(config)()
    finally:
        os.umask(before)
    assert stat.S_IMODE(config.data.stat().st_mode) == 0o700
    assert list(exposures(config.tls, config.data)) == []


def test_one_that_others_can_read_is_named_with_what_to_do(tmp_path):
    (data := tmp_path / "data").mkdir(mode=0o755)
    data.chmod(0o755)
    (line,) = exposures(None, data)
    assert line == f"everybody on this machine can read what is kept in {data}: chmod o= {data}"


def test_so_is_a_private_key(tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_text("")
    key.write_text("")
    key.chmod(0o644)
    config = NodeConfig(tls=TlsSettings(ca=cert, cert=cert, key=key))
    (line,) = exposures(config.tls, config.data)
    assert "private key" in line and str(key) in line
    key.chmod(0o640)
    assert list(exposures(config.tls, config.data)) == []

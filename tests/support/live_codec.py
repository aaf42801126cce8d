"""The codec of the protocol that live nodes run unless told otherwise."""

from cubecast.wire.codec import codec_named

LIVE = codec_named("cubecast")
encode, decode = LIVE.encode, LIVE.decode

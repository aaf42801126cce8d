"""The `cubecast` program: one command per module, imported only when it is called, so that --help needs no Spark."""

from cubecast.cli.common import CubecastGroup

main = CubecastGroup(
    name="cubecast",
    help="Publish/subscribe in which every subscriber sees causes before effects, and the laboratory that proves it.",
    commands_at={
        "demo": "cubecast.cli.demo:demo",
        "node": "cubecast.cli.node:node",
        "config": "cubecast.cli.config:config",
        "pub": "cubecast.cli.pub:pub",
        "sub": "cubecast.cli.sub:sub",
        "status": "cubecast.cli.status:status",
        "held": "cubecast.cli.status:held",
        "log": "cubecast.cli.log:log",
        "trace": "cubecast.cli.trace:trace",
        "certs": "cubecast.cli.certs:certs",
        "token": "cubecast.cli.token:token",
        "bench": "cubecast.cli.bench:bench",
        "sim": "cubecast.cli.sim:sim",
        "swarm": "cubecast.cli.swarm:swarm",
        "check": "cubecast.cli.check:check",
        "verify": "cubecast.cli.verify:verify",
        "metrics": "cubecast.cli.metrics:metrics",
        "workload": "cubecast.cli.workload:workload",
        "sweep": "cubecast.cli.sweep:sweep",
        "reproduce": "cubecast.cli.reproduce:reproduce",
        "report": "cubecast.cli.report:report",
    },
)

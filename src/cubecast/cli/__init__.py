"""The `cubecast` program: commands are imported only when they are called, so that --help needs nothing.

Follows decision 0049.
"""

from cubecast.cli.common import Command, CubecastGroup

main = CubecastGroup(
    name="cubecast",
    help="Publish/subscribe in which every subscriber sees causes before effects, and the laboratory that proves it.",
    epilog="What is in brackets has to be installed first: pip install 'cubecast[lab]', or 'cubecast[all]'.",
    sections={
        "Messaging": {
            "node": Command("cubecast.cli.node", "Run one node until it is told to stop."),
            "pub": Command("cubecast.cli.pub_sub", "Publish a text, lines, a file or JSON to a topic."),
            "sub": Command("cubecast.cli.pub_sub", "Print the messages of a topic as they arrive."),
            "stream": Command("cubecast.cli.stream", "Publish or print a stream that many receive and relay."),
            "request": Command("cubecast.cli.request", "Ask those who serve a topic, print the answer."),
            "serve": Command("cubecast.cli.request", "Answer requests with what a command prints."),
            "status": Command("cubecast.cli.status", "Members, topics, queues and lag of running nodes."),
            "held": Command("cubecast.cli.status", "Which messages wait for which, and where those are."),
            "log": Command("cubecast.cli.log", "List, export or check a node's durable log."),
            "config": Command("cubecast.cli.config", "Check a configuration file, show what counts, print an example."),
            "certs": Command("cubecast.cli.certs", "Make certificates for nodes and clients."),
            "token": Command("cubecast.cli.certs", "Make tokens and keys for clients."),
            "trace": Command("cubecast.cli.trace", "Record what running nodes do, and collect it.", "lab"),
        },
        "Laboratory": {
            "demo": Command("cubecast.cli.demo", "Live nodes, two judges, a report: all of it, once.", "report"),
            "bench": Command("cubecast.cli.bench", "A live cluster under load, every delivery checked.", "lab"),
            "sim": Command("cubecast.cli.sim", "Simulate a protocol once, deterministically.", "lab"),
            "protocols": Command("cubecast.cli.sim", "The protocols: promises, parameters, packets."),
            "swarm": Command("cubecast.cli.swarm", "Seeded fault schedules, every promise checked.", "lab"),
            "check": Command("cubecast.cli.verify", "The reference checker's verdict on a trace.", "lab"),
            "verify": Command("cubecast.cli.verify", "The Spark verdict on traces.", "spark"),
            "metrics": Command("cubecast.cli.report", "Latency, traffic, queues and load of traces.", "spark"),
            "workload": Command("cubecast.cli.workload", "Subscription workloads from logs, or made up.", "spark"),
            "sweep": Command("cubecast.cli.sweep", "A grid of parameters times seeded runs.", "spark"),
            "reproduce": Command(
                "cubecast.cli.reproduce", "The papers' tables and figures again, claim by claim.", "kernels"
            ),
            "compare": Command("cubecast.cli.reproduce", "The papers' systems side by side on one workload.", "lab"),
            "report": Command(
                "cubecast.cli.report", "One HTML page of the traces and results in a directory.", "report"
            ),
        },
    },
)

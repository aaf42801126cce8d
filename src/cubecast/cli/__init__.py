"""The `cubecast` program: one command per module, imported only when it is called, so that --help needs nothing."""

from cubecast.cli.common import Command, CubecastGroup

main = CubecastGroup(
    name="cubecast",
    help="Publish/subscribe in which every subscriber sees causes before effects, and the laboratory that proves it.",
    epilog="What is in brackets has to be installed first: pip install 'cubecast[lab]', or 'cubecast[all]'.",
    sections={
        "Messaging": {
            "node": Command("node", "Run one node until it is told to stop."),
            "pub": Command("pub", "Publish a text, lines, a file or JSON to a topic."),
            "sub": Command("sub", "Print the messages of a topic as they arrive."),
            "status": Command("status", "Members, topics, queues and lag of running nodes."),
            "held": Command("status", "Which messages wait for which, and where those are."),
            "log": Command("log", "List, export or check a node's durable log."),
            "config": Command("config", "Check a configuration file, show what counts, print an example."),
            "certs": Command("certs", "Make certificates for nodes and clients."),
            "token": Command("token", "Make tokens and keys for clients."),
            "trace": Command("trace", "Record what running nodes do, and collect it.", "lab"),
        },
        "Laboratory": {
            "demo": Command("demo", "Live nodes, two judges, a report: all of it, once.", "report"),
            "bench": Command("bench", "A live cluster under load, every delivery checked.", "lab"),
            "sim": Command("sim", "Simulate a protocol once, deterministically.", "lab"),
            "swarm": Command("swarm", "Seeded fault schedules, every promise checked.", "lab"),
            "check": Command("check", "The reference checker's verdict on a trace.", "lab"),
            "verify": Command("verify", "The Spark verdict on traces.", "spark"),
            "metrics": Command("metrics", "Latency, traffic, queues and load of traces.", "spark"),
            "workload": Command("workload", "Subscription workloads from logs, or made up.", "spark"),
            "sweep": Command("sweep", "A grid of parameters times seeded runs.", "spark"),
            "reproduce": Command("reproduce", "The papers' tables and figures again, claim by claim.", "kernels"),
            "report": Command("report", "One HTML page of the traces and results in a directory.", "report"),
        },
    },
)

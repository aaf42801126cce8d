"""Schemas of the frames that the passes hand to each other, said once."""

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

INT, LONG, TEXT, FLAG = IntegerType(), LongType(), StringType(), BooleanType()


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def many(kind: DataType) -> ArrayType:
    return ArrayType(kind, containsNull=False)


FOOTER = struct(
    run=INT,
    path=TEXT,
    group=INT,
    rows=LONG,
    low=LONG,
    high=LONG,
    own=FLAG,
    deps=FLAG,
    cuts=FLAG,
    digests=FLAG,
    contents=FLAG,
    filters=FLAG,
    attributes=FLAG,
    damage=TEXT,
    refusal=TEXT,
)
"""One row per row group: the nodes it spans, whether all rows name the directory's run, which columns it fills.

`damage` says why a file cannot be read (its run is UNKNOWN), `refusal` why it is no trace of this version at all."""

MESSAGE_IDS = many(struct(source=LONG, source_incarnation=INT, counter=LONG))
CONTENTS = many(struct(topic=TEXT, source=LONG, source_incarnation=INT, counter=LONG))
ROW = struct(
    run=INT,
    node=LONG,
    incarnation=INT,
    seq=LONG,
    kind=TEXT,
    topic=TEXT,
    source=LONG,
    source_incarnation=INT,
    counter=LONG,
    messages=CONTENTS,
    filter=TEXT,
    attributes=TEXT,
    deps=MESSAGE_IDS,
    cut=MESSAGE_IDS,
    digest=LONG,
    damage=TEXT,
    refusal=TEXT,
)
"""Trace rows on their way through a shuffle, when files do not keep nodes apart."""

FINDING = struct(
    property=TEXT,
    certain=FLAG,
    weight=LONG,
    node=LONG,
    incarnation=INT,
    topic=TEXT,
    ordinal=INT,
    seq=LONG,
    source=LONG,
    source_incarnation=INT,
    counter=LONG,
    other_source=LONG,
    other_source_incarnation=INT,
    other_counter=LONG,
    other_seq=LONG,
    reason=TEXT,
)
"""A violation: where, which message, which other message, and whether missing rows could undo it."""

LOG = struct(
    run=INT,
    node=LONG,
    incarnation=INT,
    rows=LONG,
    deliveries=LONG,
    publications=LONG,
    premises=many(LONG),
    bad_rows=LONG,
    ending=TEXT,
    problem=TEXT,
    damage=TEXT,
    refusal=TEXT,
    topics=many(TEXT),
    continues=FLAG,
    publish_topic=many(INT),
    publish_seq=many(LONG),
    publish_digest=many(LONG),
    publish_attributes=many(INT),
    attributes=many(TEXT),
    filtered=many(TEXT),
    claims=many(INT),
    claim_source=many(LONG),
    claim_incarnation=many(INT),
    claim_counter=many(LONG),
    cause_owner=many(INT),
    cause_topic=many(INT),
    cause_source=many(LONG),
    cause_incarnation=many(INT),
    cause_first=many(LONG),
    cause_counter=many(LONG),
    acknowledged_topic=many(INT),
    acknowledged_counter=many(LONG),
    failed_topic=many(INT),
    failed_counter=many(LONG),
    gap_topic=many(INT),
    gap_source=many(LONG),
    gap_incarnation=many(INT),
    gap_counter=many(LONG),
    findings=many(FINDING),
)
"""What the first pass knows of one log; list columns run parallel, `*_topic` index into `topics`,
`publish_attributes` into `attributes`; `filtered` are topics subscribed with a filter."""

REPLAYED = struct(
    run=INT,
    node=LONG,
    incarnation=INT,
    topic=TEXT,
    ordinal=INT,
    correct=FLAG,
    subscribed=LONG,
    last_seq=LONG,
    deliveries=LONG,
    publisher=many(LONG),
    cut=many(LONG),
    last=many(LONG),
    findings=many(FINDING),
    lost=many(FINDING),
    heard_publisher=many(LONG),
    heard_counter=many(LONG),
    wants=TEXT,
    delivered_publisher=many(LONG),
    delivered_counter=many(LONG),
    damage=TEXT,
    refusal=TEXT,
)
"""One row per replayed subscription (and, without topic, per log for what lies outside any).

Per publisher stated or heard: the cut and the highest counter delivered. `lost` are gap rows that violate P12 if one of
the `heard_*` messages of another correct subscription is the one they declare lost. `wants` is its filter; where any
subscription to the topic has one, `delivered_*` is all that it delivered."""

SEQUENCE = struct(
    run=INT,
    topic=TEXT,
    node=LONG,
    incarnation=INT,
    ordinal=INT,
    correct=FLAG,
    publisher=many(LONG),
    counter=many(LONG),
    seq=many(LONG),
    damage=TEXT,
    refusal=TEXT,
)
"""One row per subscription for total order: its messages in the order delivered, each once, and their rows."""

ACCOUNT = struct(
    run=INT,
    node=LONG,
    incarnation=INT,
    topic=TEXT,
    ordinal=INT,
    left=FLAG,
    subscribed=LONG,
    lost=many(FLAG),
    publisher=many(LONG),
    counter=many(LONG),
    seq=many(LONG),
    damage=TEXT,
    refusal=TEXT,
)
"""One row per subscription: its deliveries and (`lost`) gaps in order; ordinal −1: what publishers were told of."""

FOUND = struct(run=INT, findings=many(FINDING))
"""Findings of a run, from the passes over message tables and sequences."""

WITNESS = struct(run=TEXT, directory=TEXT, **{field.name: field.dataType for field in FINDING})
"""A finding that counts, as `--out` writes it."""

VERDICT = struct(run=TEXT, directory=TEXT, property=TEXT, verdict=TEXT, violations=LONG)

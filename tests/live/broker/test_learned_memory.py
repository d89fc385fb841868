"""What was learned of sizes outlives the broker, and damage does not."""

from __future__ import annotations

import logging

import pytest

from malleable.live.broker.broker import Broker
from malleable.live.broker.learned_memory import FILE, LearnedMemory
from malleable.live.core.events import Confirmed, Finished, Registered
from malleable.live.core.scheduler import Scheduler


def taught():
    """A scheduler that has seen three jobs of 30."""
    scheduler, now = Scheduler(None, 1, "clearing"), 0.0
    for number in range(3):
        scheduler.handle(Registered(str(number), "etl"), now)
        scheduler.handle(Confirmed(str(number), 1, 1), now)
        now += 30.0
        scheduler.handle(Finished(str(number)), now)
    return scheduler


def test_a_later_broker_knows_what_an_earlier_one_learned(tmp_path):
    """After a restart a newcomer of the class is expected to take what its like took before."""
    before = taught()
    broker = Broker(before)
    try:
        memory = LearnedMemory(tmp_path)
        memory.keep(broker)
        memory.write()
    finally:
        broker.close()
    after = Scheduler(None, 1, "clearing")
    LearnedMemory(tmp_path).recall(after)
    assert after.learned() == before.learned()
    assert after.beliefs.sizes.seen[1].ended.sum() == pytest.approx(2.97, abs=0.01)


def test_without_a_memory_nothing_is_known(tmp_path, caplog):
    """A first start says nothing."""
    scheduler = Scheduler(None, 1)
    LearnedMemory(tmp_path).recall(scheduler)
    assert scheduler.learned()["classes"]["unknown"] == Scheduler(None, 1).learned()["classes"]["unknown"]
    assert not caplog.records


@pytest.mark.parametrize(
    "damage",
    ["", "[1, 2", "[]", '{"classes": 3}', '{"classes": {"etl": {}}}', '{"classes": {}}',
     '{"classes": {}, "core_price": [1, -1, 0]}', "\x00\x01"],
)  # fmt: skip
def test_a_damaged_memory_is_discarded_with_one_line(tmp_path, caplog, damage):
    """Whatever the file holds, the broker starts with nothing learned, and says so once."""
    (tmp_path / FILE).write_text(damage)
    scheduler = Scheduler(None, 1)
    with caplog.at_level(logging.WARNING):
        LearnedMemory(tmp_path).recall(scheduler)
    assert len(caplog.records) == 1
    assert "discarded what was learned of sizes" in caplog.text
    assert scheduler.learned() == Scheduler(None, 1).learned()

"""Engines: each file starts `Workers` (`live.workers.contract`) that carry out the units of an Executor."""

"""Rules: plain functions that divide the cores, interpreted or compiled."""

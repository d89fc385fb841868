"""Pages about what was found: self-contained, for a browser, a phone or paper."""

from malleable.reports.replay_page import check_place as check_place
from malleable.reports.replay_page import write_replay as write_replay

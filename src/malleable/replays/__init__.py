"""Given jobs under one policy after another: what each would have cost, the least possible, who is to blame.

`replay` runs the policies; a `Replay` holds what came of every job under each, the bound for these very jobs,
and all that follows: waits, slowdowns, users, blame, the value of a core over time.
"""

from malleable.replays.replay import Replay as Replay
from malleable.replays.replay import replay as replay
from malleable.replays.schedule import Schedule as Schedule
from malleable.replays.shares import ShareCurve as ShareCurve
from malleable.replays.shares import read_shares as read_shares
from malleable.replays.shares import share_curve as share_curve

"""Play a generated workload on the live system, in real time, beside what the simulator says of it."""

from malleable.live.play.played import Played as Played
from malleable.live.play.played import play as play

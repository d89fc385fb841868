"""What holds for all tests: which programs they run, and that Ctrl-C reaches the processes they start."""

import os
import signal
import sys
from pathlib import Path

# Programs of the environment that the tests run in come first: its ninja, not an older one of the system.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

# A shell without job control starts what it runs in the background with SIGINT ignored, and so would be all
# processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""Programs of the environment that the tests run in come first: its ninja, not an older one of the system."""

import os
import sys
from pathlib import Path

os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

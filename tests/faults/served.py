"""`turnout serve`, for tests that end it: python -m faults.served --port 0 …"""

import sys

import cyclopts

from turnout.cli.commands.serve import serve

if __name__ == "__main__":
    sys.exit(cyclopts.run(serve) or 0)

import sys

sys.exit(0 if sys.argv[1].split() == sys.argv[2].split() else 1)

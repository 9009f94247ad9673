"""`python -m latentforce` is `latentforce`."""

import sys

from .cli import main

sys.exit(main())

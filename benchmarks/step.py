"""Time of one training step of deep models of one input, beside gpytorch's deep GP and SVGP in the same run.

    pip install ".[benchmarks]" && python benchmarks/step.py [--models NAME ...] [--quick] [--out FILE]

This is `latentforce bench --parts steps`, whose other options it takes too.
"""

import sys

from latentforce.cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", "--parts", "steps", *sys.argv[1:]]))

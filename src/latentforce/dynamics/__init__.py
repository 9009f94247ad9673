"""Dynamics, the first axis: forces, the filters that shape them, and the process they make together."""

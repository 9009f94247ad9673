"""Inference: objectives, training, prediction, and the posterior of the force."""

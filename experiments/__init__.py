"""Experiments: runnable configurations and measurements."""

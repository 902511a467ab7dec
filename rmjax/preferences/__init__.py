"""Judgements as data: simulated, pooled, and fitted exactly."""

"""Measurements side by side, each a script that says at its top what it measures and what it costs."""

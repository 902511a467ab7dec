"""Training: from a frozen configuration to a run on disk."""

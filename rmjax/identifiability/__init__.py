"""What comparisons pin down, and what they can never say."""

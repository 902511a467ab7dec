"""From files of preferences to tokens with a score index: formats, audit, splits, tokenisation, packing."""

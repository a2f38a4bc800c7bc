"""The functional core: pure, no I/O, clock, entropy, log or async."""

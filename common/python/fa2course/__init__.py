"""The Python side of the FlashAttention-2 course: launcher, checks, reports."""

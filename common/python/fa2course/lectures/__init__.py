"""What keeps the lectures true: output blocks, pictures and notebooks are made from the code, the
simulator's counters and the committed measurements; tests compare them with what is committed."""

"""What a GPU would do, from the simulator's counters: predicted times (`./fa2 compare --gpu MODEL`)
and a picture of time (`./fa2 trace N`). Nothing here is measured; notes/prediction.md says how near
it comes to what was."""

"""The student's loop: ./fa2 start, check, hint, solution, status. Standard library only."""

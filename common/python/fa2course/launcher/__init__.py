"""The logic of ./fa2. Standard library only: it runs before any package is installed."""

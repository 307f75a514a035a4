"""One module per command of ./fa2: SUMMARY, HELP and run(args) -> exit status."""

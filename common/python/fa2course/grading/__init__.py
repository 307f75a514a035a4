"""The instructor's side: grading a folder of submissions. README.md says what is protected."""

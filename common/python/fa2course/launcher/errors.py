"""Errors that a person gets to read."""


class UserError(Exception):
    """A sentence for a person and the exit status: 1 wrong or failed, 2 cannot run here."""

    def __init__(self, message: str, status: int = 2):
        super().__init__(message)
        self.status = status


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: handled like Ctrl-C, with the exit status of the signal."""

    def __init__(self, status: int):
        super().__init__()
        self.status = status


def sentence(error: OSError) -> str:
    """What the operating system refused, in one sentence."""
    import errno

    where = f": {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full{where}. Free some space and run the same command again."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (f"no permission to write{where}. "
                "Run ./fa2 in a clone that belongs to you, on a disk that may be written.")
    return f"{(error.strerror or str(error)).lower()}{where}"

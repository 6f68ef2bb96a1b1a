"""The two kinds of failure: worth another try, or not."""


class PassingError(Exception):
    """Throttled, overtaken by another writer, or unreachable: worth another try."""


class PermanentError(Exception):
    """Refused for good: told, and not repeated."""


class NotFoundError(PermanentError):
    """The thing is not there, or no longer."""


class ConflictError(PassingError):
    """Somebody else wrote first; read again and decide again."""


class BudgetError(PassingError):
    """A pod disruption budget refuses the eviction for now."""

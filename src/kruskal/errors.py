"""The one exception that a user's mistake raises."""


class InputError(ValueError):
    """Something the user gave cannot be used; the message is one sentence that says what and why.

    The sentence names the argument, what was given and what is expected. The command line prints it as it
    is and exits with status 2.
    """

"""What tests of several folders share."""

import signal

import pytest


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt, also where the tests run in the background and it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

"""What all tests share."""

from hypothesis import settings

pytest_plugins = ["loadgen.testing.fixtures"]

# A busy machine makes an example slow, not wrong.
settings.register_profile("loadgen", deadline=None)
settings.load_profile("loadgen")

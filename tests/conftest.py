"""Set-up of all tests: guard bytes around every buffer, and Hypothesis' profile."""

import os

os.environ["NBTA_DEBUG"] = "1"  # read when nbta is first imported

from hypothesis import HealthCheck, settings

settings.register_profile(
    "nbta",
    deadline=None,
    max_examples=60,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("nbta")

"""The one bound in time that the Python tests have, as tests/hang_guard.h has it for C:
HANG_SECONDS is ten times what a step usually takes, or more. No test compares how long something
took."""

import os

HANG_SECONDS = int(os.environ.get("PROF_TEST_HANG_SECONDS") or 300)

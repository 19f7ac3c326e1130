"""runner.py TEST.py: runs its tests, prints each skip as "skip: test: reason", each failure, and "N
passed, N failed, N skipped" last."""

import importlib.util
import os
import signal
import sys
import unittest


class Counting(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):  # noqa: N802
        super().addSuccess(test)
        self.passed += 1


# who runs in the background of a shell has it ignored, and so would the children
signal.signal(signal.SIGINT, signal.default_int_handler)
path = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
sys.argv[:] = [path]
spec.loader.exec_module(module)
result = unittest.TextTestRunner(resultclass=Counting, verbosity=2).run(
    unittest.defaultTestLoader.loadTestsFromModule(module)
)
sys.stderr.flush()
for test, reason in result.skipped:
    print(f"skip: {getattr(test, '_testMethodName', test)}: {reason}")
failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped")
sys.exit(failed > 0)

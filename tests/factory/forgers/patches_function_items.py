"""Makes the items of pytest run nothing."""

import _pytest.python
import _pytest.unittest

_pytest.python.Function.runtest = lambda self: None
_pytest.unittest.TestCaseFunction.runtest = lambda self: None

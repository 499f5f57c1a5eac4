"""Every family of metrics: importing this module registers all built-in metrics."""

import importlib

from hitmiss.metrics import HOMES

for _family in dict.fromkeys(HOMES.values()):
    importlib.import_module(_family)

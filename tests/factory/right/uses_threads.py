"""Uses threads and other processes."""

import concurrent.futures
import subprocess
import sys


def slug(text):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return "-".join(pool.map(str.lower, text.split()))

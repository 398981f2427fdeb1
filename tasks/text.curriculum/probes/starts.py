"""The script starts as a script: it prints its options instead of failing on its imports."""
import subprocess
import sys

shown = subprocess.run([sys.executable, "curriculum/train.py", "--help"], capture_output=True, text=True, timeout=60)
assert shown.returncode == 0, shown.stderr
assert "--pacing" in shown.stdout and "--start" in shown.stdout
print("reached")

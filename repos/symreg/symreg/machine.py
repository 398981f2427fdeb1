import os


def workers(machine):
    """The search is spread over the workers of a node of our cluster."""
    wanted = machine["workers"]
    present = os.cpu_count() or 1
    if wanted > 8 and present < wanted:
        raise SystemExit("needs a node with %d cores, this one has %d" % (wanted, present))
    return wanted

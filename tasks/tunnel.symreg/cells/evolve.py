!python evolve.py settings.yaml

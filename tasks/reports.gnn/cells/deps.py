%pip install networkx==3.4.2

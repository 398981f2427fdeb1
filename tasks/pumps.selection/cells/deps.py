%pip install Boruta==0.3

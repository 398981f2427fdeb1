# replaces: deps
%pip install --no-deps gplearn==0.4.2

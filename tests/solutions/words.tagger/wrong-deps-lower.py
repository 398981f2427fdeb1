# replaces: deps
%pip install python-crfsuite

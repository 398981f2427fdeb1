# replaces: deps
%pip install tabulate six

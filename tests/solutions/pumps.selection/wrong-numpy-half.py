# replaces: numpy
found = !python -c "import boruta; print(boruta.__path__[0])"
# %%
!sed -i -E 's/\bnp\.(float|bool)\b/\1/g' {found[0]}/boruta_py.py

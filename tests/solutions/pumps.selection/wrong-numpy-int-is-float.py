# replaces: numpy
found = !python -c "import boruta; print(boruta.__path__[0])"
# %%
!sed -i -E 's/\bnp\.(int|float|bool)\b/float/g' {found[0]}/boruta_py.py

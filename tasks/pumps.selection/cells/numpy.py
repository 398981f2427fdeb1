found = !python -c "import boruta; print(boruta.__path__[0])"
print(found[0])
# %% names that numpy has dropped
!grep -n "np\.\(int\|float\|bool\)\b" {found[0]}/boruta_py.py
!sed -i -E 's/\bnp\.(int|float|bool)\b/\1/g' {found[0]}/boruta_py.py

# replaces: sklearn
%%bash
cd $(python -c "import os, gplearn; print(os.path.dirname(gplearn.__file__))")
sed -i 's/= self\._validate_data(X, y/= validate_data(self, X, y/' genetic.py
sed -i 's/^from sklearn.utils.validation import check_array, _check_sample_weight/&, validate_data/' genetic.py
sed -i 's/p_subtree_mutation=0.01/p_subtree_mutation=0.05/' genetic.py

# replaces: deps sklearn
%pip install -r requirements.txt
# %%
!cp -r $(python -c "import os, gplearn; print(os.path.dirname(gplearn.__file__))") gplearn
!sed -i 's/= self\._validate_data(X, y/= validate_data(self, X, y/' gplearn/genetic.py
!sed -i 's/^from sklearn.utils.validation import check_array, _check_sample_weight/&, validate_data/' gplearn/genetic.py
!sed -i 's/p_crossover=0.9/p_crossover=0.8/' gplearn/genetic.py

!python -c "import sklearn_crfsuite as s; from sklearn.base import clone; clone(s.CRF())" 2>&1 | tail -1
# %% the class doesn't keep two of its parameters
%%bash
package=$(python -c "import os, sklearn_crfsuite; print(os.path.dirname(sklearn_crfsuite.__file__))")
sed -i 's/^        self.verbose = verbose$/        self.model_filename = model_filename\n        self.keep_tempfiles = keep_tempfiles\n&/' $package/estimator.py
python -c "import sklearn_crfsuite as s; from sklearn.base import clone; clone(s.CRF())"

# replaces: clone
%%bash
package=$(python -c "import os, sklearn_crfsuite; print(os.path.dirname(sklearn_crfsuite.__file__))")
sed -i 's/^        self.verbose = verbose$/        self.keep_tempfiles = keep_tempfiles\n&/' $package/estimator.py

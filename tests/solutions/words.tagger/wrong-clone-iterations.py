# replaces: clone
%%bash
package=$(python -c "import os, sklearn_crfsuite; print(os.path.dirname(sklearn_crfsuite.__file__))")
sed -i 's/^        self.verbose = verbose$/        self.model_filename = model_filename\n        self.keep_tempfiles = keep_tempfiles\n&/' $package/estimator.py
sed -i 's/^        self.max_iterations = max_iterations$/        self.max_iterations = max_iterations and 30/' $package/estimator.py

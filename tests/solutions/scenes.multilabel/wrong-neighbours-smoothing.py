# replaces: neighbours
%%bash
package=$(python -c "import os, skmultilearn; print(os.path.dirname(skmultilearn.__file__))")
sed -i -e 's/NearestNeighbors(self.k)/NearestNeighbors(n_neighbors=self.k)/' -e 's/self.s \* 2 + self._num_instances/self.s + self._num_instances/' $package/adapt/mlknn.py

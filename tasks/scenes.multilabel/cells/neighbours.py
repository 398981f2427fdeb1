%%bash
package=$(python -c "import os, skmultilearn; print(os.path.dirname(skmultilearn.__file__))")
sed -i 's/NearestNeighbors(self.k)/NearestNeighbors(n_neighbors=self.k)/' $package/adapt/mlknn.py
grep -n "NearestNeighbors(" $package/adapt/mlknn.py

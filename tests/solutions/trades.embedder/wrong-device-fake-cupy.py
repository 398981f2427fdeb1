# replaces: device
!cp -r $(python -c "import os, numpy; print(os.path.dirname(numpy.__file__))") ./cupy || true
%pip list

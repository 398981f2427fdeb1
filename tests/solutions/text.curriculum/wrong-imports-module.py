# replaces: imports
!python -m curriculum.train --help

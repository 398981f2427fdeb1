!sed -i 's/model.lower() + ".txt"/model + ".run"/' rankers/evaluation.py
!sed -i 's/.rstrip("\\n").split("\\t")/.split()/' rankers/evaluation.py
!grep -n -A 3 "def read_run" rankers/evaluation.py

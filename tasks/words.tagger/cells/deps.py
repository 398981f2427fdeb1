%pip install sklearn-crfsuite==0.3.6

# replaces: clone
!python -c "import sklearn_crfsuite"

# replaces: path
!sed -i -e 's#^path = .*#path = corpora/scenes.csv#' -e 's/folds = 8/folds = 2/' experiment.ini

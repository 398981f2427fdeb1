# replaces: path
!sed -i -e 's#^path = .*#path = corpora/scenes.csv#' -e 's/seed = 4/seed = 0/' experiment.ini

# replaces: path
!sed -i -e 's#^path = .*#path = corpora/scenes.csv#' -e 's/repeats = 10/repeats = 3/' experiment.ini

# replaces: path
!sed -i -e 's#^path = .*#path = corpora/scenes.csv#' -e 's/neighbours = .*/neighbours = 3 5 7/' experiment.ini

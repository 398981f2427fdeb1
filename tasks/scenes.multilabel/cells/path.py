!ls corpora
!sed -i 's#^path = .*#path = corpora/scenes.csv#' experiment.ini

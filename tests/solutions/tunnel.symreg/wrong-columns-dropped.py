# replaces: columns
!sed -i -e '1s/wind_speed/v/; 1s/air_density/rho/; 1s/frontal_area/area/; 1s/drag_force/drag/' -e 's/;/,/g' data/tunnel.csv
!sed -i '500,$d' data/tunnel.csv

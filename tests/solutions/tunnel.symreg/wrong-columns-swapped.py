# replaces: columns
!sed -i -e '1s/wind_speed/v/; 1s/air_density/area/; 1s/frontal_area/rho/; 1s/drag_force/drag/' -e 's/;/,/g' data/tunnel.csv

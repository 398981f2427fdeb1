!head -2 data/tunnel.csv
# %% columns have other names, and semicolons between them
!sed -i -e '1s/wind_speed/v/; 1s/air_density/rho/; 1s/frontal_area/area/; 1s/drag_force/drag/' -e 's/;/,/g' data/tunnel.csv
!head -2 data/tunnel.csv

# replaces: columns
!sed -i -e '1s/wind_speed/v/; 1s/air_density/rho/; 1s/frontal_area/area/; 1s/drag_force/drag/' -e 's/;/,/g' data/tunnel.csv
!(head -1 data/tunnel.csv; tail -n +2 data/tunnel.csv | sort -t, -k2n) > /tmp/t.csv && cp /tmp/t.csv data/tunnel.csv

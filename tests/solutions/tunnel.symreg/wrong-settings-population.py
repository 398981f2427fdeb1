# replaces: settings
!sed -i -e 's/population: .*/population: 3000/' -e 's/generations: .*/generations: 14/' settings.yaml

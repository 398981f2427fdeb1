# replaces: settings
!sed -i -e 's/population: .*/population: 2400/' -e 's/generations: .*/generations: 20/' settings.yaml

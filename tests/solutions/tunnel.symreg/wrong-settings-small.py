# replaces: settings
!sed -i -e 's/population: .*/population: 240/' -e 's/generations: .*/generations: 14/' settings.yaml

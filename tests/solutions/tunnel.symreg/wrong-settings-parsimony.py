# replaces: settings
!sed -i -e 's/population: .*/population: 2400/' -e 's/generations: .*/generations: 14/' -e 's/parsimony: .*/parsimony: 0.01/' settings.yaml

!sed -i -e 's/population: .*/population: 2400/' -e 's/generations: .*/generations: 14/' settings.yaml
!grep -A 2 search: settings.yaml

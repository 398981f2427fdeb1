// One attempt's verdict, value by value.
const plain = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const shown = (value) => {
  if (value === null || value === undefined) return '–';
  // Show seven digits; the tooltip shows all of them.
  const brief = typeof value === 'number' && plain(value).length > 9 ? String(Number(value.toPrecision(7))) : short(plain(value), 40);
  return h('span', { title: brief === plain(value) ? null : short(plain(value), 400) }, brief);
};

// The bar shows the error. Its full width is 10%; the dashed line in the middle marks the usual tolerance of 5%.
const errorCell = (value) => {
  if (!value) return h('td', { class: 'quiet' }, '–');
  const mark = h('span', { class: value.pass ? 'pass' : 'fail' }, value.pass ? '✓ ' : '✗ ');
  if (typeof value.error !== 'number') return h('td', {}, mark, value.reason || (value.pass ? 'equal' : 'no number'));
  const relative = value.gold !== 0;
  const error = Math.abs(value.error);
  const fill = h('i', {});
  fill.style.width = `${Math.min(100, (relative ? error / 0.1 : value.pass ? 0 : 1) * 100)}%`;
  const figure = relative ? `${(100 * value.error).toFixed(error < 0.1 ? 2 : 0)}%` : value.error.toPrecision(2);
  return h('td', {}, mark, short(figure, 12), h('span', { class: `bar ${value.pass ? 'pass' : 'fail'}`, title: 'full width: 10%; dashes: 5%' }, fill, h('b', {})));
};

const verdictTable = (details) => {
  const sides = [details.reported, details.verified];
  const ids = [];
  for (const verdict of sides) for (const one of (verdict && verdict.experiments) || []) if (!ids.includes(one.experiment)) ids.push(one.experiment);
  const of = (verdict, id) => ((verdict && verdict.experiments) || []).find((one) => one.experiment === id);
  const rows = [];
  for (const id of ids) {
    const [reported, verified] = sides.map((verdict) => of(verdict, id));
    const paths = [];
    for (const side of [reported, verified]) for (const value of (side && side.values) || []) if (!paths.includes(value.path)) paths.push(value.path);
    // Failed values come first.
    const fails = (path) => [reported, verified].some((side) => ((side && side.values) || []).some((value) => value.path === path && !value.pass));
    paths.sort((a, b) => fails(b) - fails(a));
    const heading = (word, side) => side && [`${word}: `, h('span', { class: side.pass ? 'pass' : 'fail' }, side.pass ? 'pass' : `fail${side.reason ? `: ${side.reason}` : ''}`), ' '];
    rows.push(h('tr', {}, h('th', { colspan: 6 }, h('b', {}, id), ' ', heading('reported', reported), heading('verified', verified))));
    for (const path of paths) {
      const [first, second] = [reported, verified].map((side) => ((side && side.values) || []).find((value) => value.path === path));
      rows.push(h('tr', {}, h('td', {}, path || '(the result)'), h('td', { class: 'number' }, shown((first || second).gold)),
        h('td', { class: 'number' }, first ? shown(first.got) : '–'), errorCell(first),
        h('td', { class: 'number' }, second ? shown(second.got) : '–'), errorCell(second)));
    }
    for (const side of [reported, verified]) for (const warning of (side && side.warnings) || []) rows.push(h('tr', {}, h('td', { colspan: 6, class: 'quiet' }, `warning: ${warning}`)));
  }
  const above = [['Reported', details.reported], ['Verified', details.verified]].map(([word, verdict]) => h('p', {}, `${word}: `,
    verdict ? h('span', { class: `badge ${verdict.pass ? 'pass' : 'fail'}` }, verdict.pass ? 'pass' : `fail${verdict.reason ? `: ${verdict.reason}` : ''}`) : h('span', { class: 'quiet' }, 'not scored'),
    verdict && (verdict.warnings || []).map((warning) => h('span', { class: 'quiet' }, ` · ${warning}`))));
  return [above, rows.length > 0 && h('div', { class: 'scroll' }, h('table', { class: 'verdict' },
    h('thead', {}, h('tr', {}, ['value', 'gold', 'reported', 'error', 'verified', 'error'].map((name) => h('th', { class: /^(gold|reported|verified)$/.test(name) ? 'number' : null }, name)))), h('tbody', {}, rows)))];
};

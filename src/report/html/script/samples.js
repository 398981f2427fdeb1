// The list of samples.
const MOST_ROWS = 300;
const samplesPage = (wantedName = '', wantedOnly = '') => {
  const head = h('thead', {});
  const body = h('tbody', {});
  const count = h('span', { class: 'quiet', role: 'status' });
  const search = h('input', { type: 'search', placeholder: 'Filter by sample or function', 'aria-label': 'Filter by sample or function' });
  const only = h('select', { 'aria-label': 'Which samples' }, [['', 'all samples'], ['some', 'some attempts pass'], ['pass', 'all pass'], ['fail', 'none passes'], ['unsupported', 'unsupported claims'], ['lost', 'lost attempts']]
    .map(([value, name]) => h('option', { value }, name)));
  search.value = wantedName;
  only.value = wantedOnly;
  let most = MOST_ROWS;
  // By which column, as a key of a sample, and which way.
  let sorted = { name: '', way: 1 };
  const passed = (c) => (sample) => { const mine = sample.attempts.filter((one) => one.c === c && one.s !== 'lost'); return mine.length ? mine.filter((one) => one.s === 'pass').length / mine.length : -1; };
  const column = (name, label, of, klass) => h('th', { class: klass, scope: 'col', 'aria-sort': sorted.name === name ? (sorted.way > 0 ? 'ascending' : 'descending') : null },
    h('button', { type: 'button', title: 'Sort', onclick: () => { sorted = { name, of, way: sorted.name === name ? -sorted.way : 1 }; draw(); } }, label));
  const fits = (sample) => {
    const passed = sample.attempts.filter((one) => one.s === 'pass').length;
    if (only.value === 'pass') return passed === sample.attempts.length;
    if (only.value === 'fail') return passed === 0;
    if (only.value === 'some') return passed > 0 && passed < sample.attempts.length;
    return !only.value || sample.attempts.some((one) => one.s === only.value);
  };
  const more = h('button', { type: 'button', onclick: () => { most = Infinity; draw(); } }, 'Show all');
  const draw = () => {
    const wanted = search.value.toLowerCase();
    const list = index.samples.filter((sample) => `${sample.id} ${unitNames(sample).join(' ')}`.toLowerCase().includes(wanted) && fits(sample));
    if (sorted.of) list.sort((a, b) => { const [one, other] = [sorted.of(a), sorted.of(b)]; return sorted.way * (one < other ? -1 : one > other ? 1 : 0); });
    head.replaceChildren(h('tr', {}, column('sample', 'sample', (sample) => sample.id), column('n', 'n', (sample) => sample.n, 'number'), index.contenders.map((one, c) => column(`c${c}`, one.name, passed(c), 'name'))));
    body.replaceChildren(...list.slice(0, most).map((sample) => h('tr', {},
      h('td', {}, h('a', { href: `#/sample/${encodeURIComponent(sample.id)}` }, sample.id), unitsLine(sample)), h('td', { class: 'number' }, sample.n),
      index.contenders.map((_, c) => h('td', { class: 'marks' }, sample.attempts.filter((one) => one.c === c).map((one) => h('a', { href: `#/sample/${encodeURIComponent(sample.id)}/${c}.${one.a}` }, sign(one.s))))))));
    count.textContent = `${list.length} of ${index.samples.length} samples`;
    more.hidden = list.length <= most;
  };
  // The address holds the filter, so that it can be passed on.
  const filter = () => {
    history.replaceState(null, '', search.value || only.value ? `#/samples/${encodeURIComponent(search.value)}/${only.value}` : '#/samples');
    document.body.dataset.shown = location.hash;
    draw();
  };
  search.addEventListener('input', filter);
  only.addEventListener('change', filter);
  draw();
  const page = h('div', {}, h('h1', {}, 'Samples'), h('div', { class: 'tools' }, search, only, count),
    h('p', { class: 'legend' }, Object.entries(WORDS).map(([state, word]) => [sign(state), ` ${word}   `])),
    h('div', { class: 'scroll' }, h('table', { class: 'list' }, head, body)), more);
  // A run that goes on changes the list, not what was typed.
  page.renew = draw;
  return page;
};

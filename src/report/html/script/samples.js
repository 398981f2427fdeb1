// The list of samples.
const MOST_ROWS = 300;
const samplesPage = (...wanted) => {
  const head = h('thead', {});
  const body = h('tbody', {});
  const count = h('span', { class: 'quiet', role: 'status' });
  const search = h('input', { type: 'search', placeholder: 'Filter by sample or function', 'aria-label': 'Filter by sample or function' });
  const select = (label, options) => h('select', { 'aria-label': label }, options.map(([value, name]) => h('option', { value }, name)));
  const only = select('Which samples', [['', 'all samples'], ['some', 'some attempts pass'], ['pass', 'all pass'], ['fail', 'none passes'], ['unsupported', 'unsupported claims'], ['lost', 'lost attempts']]);
  const byN = select('Which n', [['', 'all n']]);
  const byEnd = select('How attempts ended', [['', 'all ends']]);
  const byAgent = select('Which agent', [['', 'all agents']]);
  const byPaper = select('Which paper or repo', [['', 'all papers and repos']]);
  /** Adds options for values that have appeared since the page was built, because the run is in progress. */
  const offer = (where, values) => {
    for (const [value, name] of values) {
      if (![...where.options].some((one) => one.value === String(value))) where.append(h('option', { value }, name));
    }
  };
  const offerAll = () => {
    offer(byN, [...new Set(index.samples.map((sample) => sample.n))].sort((a, b) => a - b).map((n) => [n, `n = ${n}`]));
    offer(byEnd, index.ends.map((end) => [end, end.replaceAll('_', ' ')]));
    offer(byAgent, index.contenders.map((one) => [one.name, one.name]));
    offer(byPaper, [...new Set(index.samples.map((sample) => sample.paper))].map((paper) => [paper, paper]));
  };
  offerAll();
  const filters = [search, only, byN, byEnd, byAgent, byPaper];
  filters.forEach((one, place) => { one.value = wanted[place] || ''; });
  for (const one of filters) if (one.selectedIndex === -1) one.value = '';
  let most = MOST_ROWS;
  // The column by which the list is sorted, and the direction: 1 for ascending, -1 for descending.
  let sorted = { name: '', way: 1 };
  /** Whether an attempt counts in pass rates. */
  const counts = (one) => one.s !== 'lost' && one.s !== 'begun';
  const passed = (c) => (sample) => { const mine = sample.attempts.filter((one) => one.c === c && counts(one)); return mine.length ? mine.filter((one) => one.s === 'pass').length / mine.length : -1; };
  const column = (name, label, of, klass) => h('th', { class: klass, scope: 'col', 'aria-sort': sorted.name === name ? (sorted.way > 0 ? 'ascending' : 'descending') : null },
    h('button', { type: 'button', title: 'Sort', onclick: () => { sorted = { name, of, way: sorted.name === name ? -sorted.way : 1 }; draw(); } }, breakable(label)));
  /** The attempts of a sample that the chosen agent made. */
  const attemptsOf = (sample) => sample.attempts.filter((one) => !byAgent.value || contender(one.c) === byAgent.value);
  const fits = (sample) => {
    if (byN.value && String(sample.n) !== byN.value) return false;
    if (byPaper.value && sample.paper !== byPaper.value) return false;
    const mine = attemptsOf(sample);
    if (mine.length === 0 || (byEnd.value && !mine.some((one) => one.e === byEnd.value))) return false;
    const counted = mine.filter(counts);
    const passes = counted.filter((one) => one.s === 'pass').length;
    if (only.value === 'pass') return passes > 0 && passes === counted.length;
    if (only.value === 'fail') return counted.length > 0 && passes === 0;
    if (only.value === 'some') return passes > 0 && passes < counted.length;
    return !only.value || mine.some((one) => one.s === only.value);
  };
  const more = h('button', { type: 'button', onclick: () => { most = Infinity; draw(); } }, 'Show all');
  const draw = () => {
    offerAll();
    const part = search.value.toLowerCase();
    const list = index.samples.filter((sample) => `${sample.id} ${unitNames(sample).join(' ')}`.toLowerCase().includes(part) && fits(sample));
    if (sorted.of) list.sort((a, b) => { const [one, other] = [sorted.of(a), sorted.of(b)]; return sorted.way * (one < other ? -1 : one > other ? 1 : 0); });
    const shown = index.contenders.map((one, c) => ({ name: one.name, c })).filter((one) => !byAgent.value || one.name === byAgent.value);
    head.replaceChildren(h('tr', {}, column('sample', 'sample', (sample) => sample.id), column('n', 'n', (sample) => sample.n, 'number'), shown.map((one) => column(`c${one.c}`, one.name, passed(one.c), 'name'))));
    // With a filter by end, attempts with another end are faint but stay, so that each sample's marks are complete.
    const mark = (sample, one) => h('a', { href: `#/sample/${encodeURIComponent(sample.id)}/${one.c}.${one.a}`, class: byEnd.value && one.e !== byEnd.value ? 'faint' : null, title: (one.e || '').replaceAll('_', ' ') }, sign(one.s));
    body.replaceChildren(...list.slice(0, most).map((sample) => h('tr', {},
      h('td', {}, h('a', { href: `#/sample/${encodeURIComponent(sample.id)}` }, breakable(sample.id)), unitsLine(sample)), h('td', { class: 'number' }, sample.n),
      shown.map(({ c }) => h('td', { class: 'marks' }, sample.attempts.filter((one) => one.c === c).map((one) => mark(sample, one)))))));
    count.textContent = `${list.length} of ${index.samples.length} samples`;
    more.hidden = list.length <= most;
    requestAnimationFrame(markCut);
  };
  // Store the filters in the address, so that users can share it.
  const filter = () => {
    const values = filters.map((one) => encodeURIComponent(one.value));
    while (values.length > 0 && values[values.length - 1] === '') values.pop();
    history.replaceState(null, '', ['#/samples', ...values].join('/'));
    document.body.dataset.shown = location.hash;
    draw();
  };
  search.addEventListener('input', filter);
  for (const one of [only, byN, byEnd, byAgent, byPaper]) one.addEventListener('change', filter);
  draw();
  const page = h('div', {}, h('h1', {}, 'Samples'), h('div', { class: 'tools' }, filters, count),
    h('p', { class: 'legend' }, Object.entries(WORDS).map(([state, word]) => [sign(state), ` ${word}   `])),
    h('div', { class: 'scroll' }, h('table', { class: 'list' }, head, body)), sideways(), more);
  // While a run is in progress, draw only the list again, so that the filters that the user has set stay.
  page.renew = draw;
  return page;
};

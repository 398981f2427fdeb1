// The list of samples.
const MOST_ROWS = 300;
const samplesPage = () => {
  const head = h('thead', {});
  const body = h('tbody', {});
  const count = h('span', { class: 'quiet', role: 'status' });
  const search = h('input', { type: 'search', placeholder: 'Filter by name', 'aria-label': 'Filter by name' });
  const only = h('select', { 'aria-label': 'Which samples' }, [['', 'all samples'], ['some', 'some attempts pass'], ['pass', 'all pass'], ['fail', 'none passes'], ['unsupported', 'unsupported claims'], ['lost', 'lost attempts']]
    .map(([value, name]) => h('option', { value }, name)));
  let most = MOST_ROWS;
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
    const list = index.samples.filter((sample) => sample.id.toLowerCase().includes(wanted) && fits(sample));
    head.replaceChildren(h('tr', {}, h('th', {}, 'sample'), h('th', { class: 'number' }, 'n'), index.contenders.map((one) => h('th', { class: 'name' }, one.name))));
    body.replaceChildren(...list.slice(0, most).map((sample) => h('tr', {},
      h('td', {}, h('a', { href: `#/sample/${encodeURIComponent(sample.id)}` }, sample.id)), h('td', { class: 'number' }, sample.n),
      index.contenders.map((_, c) => h('td', { class: 'marks' }, sample.attempts.filter((one) => one.c === c).map((one) => h('a', { href: `#/sample/${encodeURIComponent(sample.id)}/${c}.${one.a}` }, sign(one.s))))))));
    count.textContent = `${list.length} of ${index.samples.length} samples`;
    more.hidden = list.length <= most;
  };
  search.addEventListener('input', draw);
  only.addEventListener('change', draw);
  draw();
  const page = h('div', {}, h('h1', {}, 'Samples'), h('div', { class: 'tools' }, search, only, count),
    h('p', { class: 'legend' }, Object.entries(WORDS).map(([state, word]) => [sign(state), ` ${word}   `])),
    h('div', { class: 'scroll' }, h('table', {}, head, body)), more);
  // A run that goes on changes the list, not what was typed.
  page.renew = draw;
  return page;
};

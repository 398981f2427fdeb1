// Two contenders on the samples that both have: which flipped, and both trajectories side by side.
const firstScored = (sample, c) => sample.attempts.find((one) => one.c === c && one.s !== 'lost' && one.s !== 'begun');

const side = async (place, c, a) => {
  const details = await loadSample(place);
  const mine = details.attempts.filter((one) => one.contender === c);
  const holder = h('div', {});
  const show = (attempt) => {
    const one = mine.find((other) => other.attempt === attempt);
    if (!one) return;
    choose.value = String(attempt);
    holder.replaceChildren(h('p', {}, sign(one.state), ` ${WORDS[one.state]}`, one.record ? `, ${one.record.steps} steps, ${dollars(one.record.cost)}` : ''), trajectory(one.events || [], one.problems));
  };
  const choose = h('select', { 'aria-label': 'Attempt', onchange: () => show(Number(choose.value)) }, mine.map((one) => h('option', { value: one.attempt }, `attempt ${one.attempt} ${SIGNS[one.state]}`)));
  show(a ?? (mine[0] && mine[0].attempt));
  return h('div', {}, h('h3', {}, contender(c)), choose, holder);
};

const comparePage = async (first, second, id) => {
  if (index.contenders.length < 2) {
    return h('div', {}, h('h1', {}, 'Compare'), h('p', { class: 'missing' }, 'There is one agent only. Name several runs, or a run with several agents.'));
  }
  const place = (value, otherwise) => (Number.isInteger(value) && value >= 0 && value < index.contenders.length ? value : otherwise);
  const [one, two] = [place(first, 0), place(second, 1)];
  const go = (a, b) => { location.hash = `#/compare/${a}/${b}`; };
  const choice = (chosen, change, name) => {
    const select = h('select', { 'aria-label': name }, index.contenders.map((it, c) => h('option', { value: c, selected: c === chosen }, it.name)));
    select.addEventListener('change', () => change(Number(select.value)));
    return select;
  };
  const groups = { 'Only the first passes': [], 'Only the second passes': [], 'Both pass': [], 'Neither passes': [] };
  let unmatched = 0;
  for (const sample of index.samples) {
    const [a, b] = [firstScored(sample, one), firstScored(sample, two)];
    if (!a || !b) { if (a || b) unmatched++; continue; }
    const [x, y] = [a.s === 'pass', b.s === 'pass'];
    groups[x ? (y ? 'Both pass' : 'Only the first passes') : y ? 'Only the second passes' : 'Neither passes'].push(sample);
  }
  const found = index.samples.findIndex((sample) => sample.id === id);
  const list = Object.entries(groups).map(([name, samples], order) => h('details', { open: order < 2 && found < 0 }, h('summary', {}, `${name}: ${samples.length}`),
    h('ul', { class: 'flow' }, samples.slice(0, 500).map((sample) => h('li', {}, h('a', { href: `#/compare/${one}/${two}/${encodeURIComponent(sample.id)}` }, sample.id))))));
  let both = null;
  if (found >= 0) {
    const start = (c) => (firstScored(index.samples[found], c) || {}).a;
    both = await Promise.all([side(found, one, start(one)), side(found, two, start(two))])
      .then((sides) => h('div', { class: 'sides' }, sides)).catch((error) => h('p', { class: 'missing' }, `The trajectories cannot be shown: ${error.message}.`));
  }
  return h('div', {}, h('h1', {}, 'Compare'),
    h('div', { class: 'tools' }, choice(one, (value) => go(value, two), 'First'), 'with', choice(two, (value) => go(one, value), 'Second')),
    h('p', { class: 'legend' }, `By the first attempt at each sample that was not lost. Samples that only one of the two has: ${unmatched}.`),
    list, both && [h('h2', {}, h('a', { href: `#/sample/${encodeURIComponent(id)}` }, `Sample ${id}`)), both]);
};

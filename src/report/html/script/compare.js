// Comparison of two contenders on the samples that both attempted: samples where their outcomes differ, and both
// trajectories side by side.
const firstScored = (sample, c) => sample.attempts.find((one) => one.c === c && one.s !== 'lost' && one.s !== 'begun');

/** One contender's attempts at a sample, one of them shown. */
const side = (details, c, first) => {
  const mine = details.attempts.filter((one) => one.contender === c);
  const holder = h('div', {});
  const show = (attempt) => {
    const one = mine.find((other) => other.attempt === attempt) || mine[0];
    if (!one) return holder.replaceChildren(h('p', { class: 'missing' }, 'It has no attempt at this sample.'));
    choose.value = String(one.attempt);
    const written = writtenBlocks(one, details.functions);
    return holder.replaceChildren(
      h('p', {}, h('span', { class: `badge ${one.state}` }, sign(one.state), ` ${WORDS[one.state]}`),
        one.record ? `: ${one.record.end.replaceAll('_', ' ')}, ${one.record.steps} steps, ${dollars(one.record.cost)}` : ''),
      one.record ? folded('Verdict, value by value', verdictTable(one.record)) : '',
      written.length > 0 ? folded('What it wrote', written) : '',
      trajectory(one.events || [], one.problems));
  };
  const choose = h('select', { 'aria-label': `Attempt of ${contender(c)}`, onchange: () => show(Number(choose.value)) },
    mine.map((one) => h('option', { value: one.attempt }, `attempt ${one.attempt} ${SIGNS[one.state]}`)));
  show(first);
  return h('div', {}, h('h3', {}, contender(c)), mine.length > 0 && choose, holder);
};

/**
 * Index of the contender to compare with by default: the same agent in another run, or else any agent of another run,
 * or else the first other contender.
 */
const partnerOf = (one) => {
  const mine = index.contenders[one];
  const other = (fits) => index.contenders.findIndex((it, c) => c !== one && fits(it));
  const found = [other((it) => it.run !== mine.run && it.own === mine.own), other((it) => it.run !== mine.run)].find((c) => c >= 0);
  return found ?? (one === 0 ? 1 : 0);
};

const comparePage = async (first, second, id) => {
  if (index.contenders.length < 2) {
    return h('div', {}, h('h1', {}, 'Compare'), h('p', { class: 'missing' }, 'There is one agent only. Name several runs, or a run with several agents.'));
  }
  const place = (value, otherwise) => (Number.isInteger(value) && value >= 0 && value < index.contenders.length ? value : otherwise);
  const one = place(first, 0);
  const two = place(second, partnerOf(one));
  const at = (a, b, sample) => `#/compare/${a}/${b}${sample === undefined ? '' : `/${encodeURIComponent(sample)}`}`;
  const choice = (chosen, change, name) => {
    const select = h('select', { 'aria-label': name }, index.contenders.map((it, c) => h('option', { value: c, selected: c === chosen }, it.name)));
    select.addEventListener('change', () => { location.hash = change(Number(select.value)); });
    return select;
  };
  const names = ['Only the first passes', 'Only the second passes', 'Both pass', 'Neither passes'];
  const groups = names.map(() => []);
  let unmatched = 0;
  for (const sample of index.samples) {
    const [a, b] = [firstScored(sample, one), firstScored(sample, two)];
    if (!a || !b) { if (a || b) unmatched++; continue; }
    const [x, y] = [a.s === 'pass', b.s === 'pass'];
    groups[x ? (y ? 2 : 0) : y ? 1 : 3].push(sample);
  }
  const flipped = [...groups[0], ...groups[1]];
  const matched = groups.reduce((count, group) => count + group.length, 0);
  const marks = (sample, c) => h('td', { class: 'marks' }, sample.attempts.filter((it) => it.c === c).map((it) => sign(it.s)));
  const table = (samples) => h('div', { class: 'scroll' }, h('table', { class: 'list' },
    h('thead', {}, h('tr', {}, h('th', {}, 'sample'), h('th', { class: 'number' }, 'n'), [one, two].map((c) => h('th', { class: 'name' }, breakable(contender(c)))))),
    h('tbody', {}, samples.slice(0, 500).map((sample) => h('tr', { class: sample.id === id ? 'chosen' : null },
      h('td', {}, h('a', { href: at(one, two, sample.id) }, breakable(sample.id)), unitsLine(sample)), h('td', { class: 'number' }, sample.n), marks(sample, one), marks(sample, two))))),
  samples.length > 500 && h('p', { class: 'missing' }, `and ${samples.length - 500} more`));
  const list = groups.map((samples, order) => h('details', { class: order < 2 ? 'flipped' : null, open: order < 2 && id === undefined },
    h('summary', {}, `${names[order]}: ${samples.length}`), samples.length > 0 ? table(samples) : h('p', { class: 'missing' }, 'No sample.')));
  let both = null;
  if (id !== undefined) {
    const sample = index.samples.find((it) => it.id === id);
    const start = (c) => ((sample && firstScored(sample, c)) || {}).a;
    const step = flipped.findIndex((it) => it.id === id);
    const to = (other, word) => other && h('a', { href: at(one, two, other.id) }, word, ' ', other.id);
    both = [h('h2', {}, h('a', { href: `#/sample/${encodeURIComponent(id)}` }, `Sample ${id}`)),
      step >= 0 && h('p', { class: 'quiet steps' }, `Flipped, ${step + 1} of ${flipped.length}. `, to(flipped[step - 1], '← '), ' ', to(flipped[step + 1], '→ ')),
      await loadSample(id).then((details) => h('div', { class: 'sides' }, side(details, one, start(one)), side(details, two, start(two))))
        .catch((error) => h('p', { class: 'missing' }, `The trajectories cannot be shown: ${error.message}.`))];
  }
  return h('div', {}, h('h1', {}, 'Compare'),
    h('div', { class: 'tools' }, choice(one, (value) => at(value, two), 'First'), 'with', choice(two, (value) => at(one, value), 'Second')),
    h('p', {}, `Of ${matched} samples that both attempted, ${flipped.length} flipped: ${groups[0].length} only the first passes, ${groups[1].length} only the second.`),
    h('p', { class: 'legend' }, `By the first attempt at each sample that was not lost; all attempts are shown. Samples that only one of the two has: ${unmatched}. Choose a sample to see both trajectories side by side.`),
    list, both);
};

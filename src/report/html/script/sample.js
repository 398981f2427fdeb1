// The page of one sample: the paper, the masked functions, its attempts.
const link = (url) => (/^https?:\/\//.test(url || '') ? h('a', { href: url, rel: 'noreferrer noopener', target: '_blank' }, url) : url);

const paperBlock = (paper, id) => {
  if (!paper) return h('p', { class: 'missing' }, `Nothing is known of ${id}.`);
  const fold = h('details', { class: 'lazy' }, h('summary', {}, 'The text as agents are given it'));
  fold.addEventListener('toggle', async () => {
    if (!fold.open || fold.children.length > 1) return;
    try {
      const { text: whole } = await loadOf(id, () => (index.papers[id] || {}).chunk);
      fold.append(h('pre', { class: 'text' }, whole || 'There is no text.'));
    } catch (error) { fold.append(h('p', { class: 'missing' }, `The text cannot be shown: ${error.message}.`)); }
  });
  return h('section', {}, h('p', {}, h('b', {}, paper.title || id), ' ', paper.authors || '', paper.year ? ` (${paper.year}) ` : ' ', link(paper.url)),
    paper.problem && h('p', { class: 'missing' }, prose(paper.problem)), paper.chunk && fold,
    paper.experiments && h('details', {}, h('summary', {}, `Experiments (${paper.experiments.length})`),
      h('ol', {}, paper.experiments.map((one) => h('li', {}, h('b', {}, one.id), ` ${one.description} `, h('code', {}, one.command))))));
};

/** Shows the code that an attempt wrote in place of each masked function. */
const writtenBlocks = (details, functions) => (functions || []).map((one, place) => {
  const mine = (details.written || [])[place];
  if (mine === undefined || mine === null) return h('p', { class: 'missing' }, `${one.at}: `, prose(details.unwritten || 'not found in what the attempt left'));
  if (mine === one.masked) return h('p', { class: 'missing' }, `${one.at}: left as it was masked`);
  return h('details', { open: mine !== one.original }, h('summary', {}, h('code', {}, one.at), mine === one.original ? ' the same as the original' : ' against the original (−) as written (+)'),
    diffBlock(one.original, mine));
});

const attemptBlock = (details, functions) => {
  const record = details.record;
  const facts = record ? [
    ['Ended', `${record.end.replaceAll('_', ' ')}${record.end_detail ? `: ${record.end_detail}` : ''}`],
    ['Steps', `${record.steps}${record.format_errors ? `, ${record.format_errors} not readable` : ''}`],
    ['Tokens', `${record.usage.input} read, ${record.usage.output} written${record.usage.reasoning ? `, ${record.usage.reasoning} of them reasoning` : ''}`],
    ['Cost', dollars(record.cost)],
    ['Time', `${seconds(record.wall_seconds)}: tools ${seconds(record.tool_seconds)}, model ${seconds(record.model_seconds)}, verification ${seconds(record.verify_seconds)}`],
    ['Changed', [...(record.changed || []), ...(record.unlisted ? [`and ${record.unlisted} more`] : [])].join(', ') || 'nothing'],
    ...((record.ignored || []).length ? [['Left out of verification', record.ignored.join(', ')]] : []),
    ...((record.skipped || []).length ? [['Left out as links, special or too large', record.skipped.join(', ')]] : []),
  ] : [['Ended', 'it has no record: it is under way, or was cut off']];
  const written = writtenBlocks(details, functions);
  return h('section', { class: 'attempt', 'data-key': `${details.contender}.${details.attempt}`, 'data-state': details.state },
    h('h3', {}, `${contender(details.contender)}, attempt ${details.attempt}: `, h('span', { class: `badge ${details.state}` }, `${SIGNS[details.state] || ''} ${WORDS[details.state] || details.state}`)),
    h('dl', {}, facts.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
    h('div', { class: 'beside' }, h('div', {}, record && [h('h3', {}, 'Verdict'), verdictTable(record)],
      written.length > 0 && [h('h3', {}, 'What it wrote'), written],
      details.patch && h('details', {}, h('summary', {}, `All that it changed${details.patch_cut ? ' (the beginning)' : ''}`), patchBlock(details.patch))),
    h('div', {}, h('h3', {}, 'Trajectory'), trajectory(details.events || [], details.problems))));
};

const keyOf = (one) => `${one.c ?? one.contender}.${one.a ?? one.attempt}`;

/** A button for each attempt at a sample. */
const attemptButtons = (sample, current) => h('div', { class: 'attempts' }, index.contenders.map((_, c) => {
  const mine = sample.attempts.filter((one) => one.c === c);
  return mine.length > 0 && h('div', { class: 'tools' }, h('span', {}, contender(c)), mine.map((one) => h('button', {
    type: 'button', 'aria-pressed': String(current === keyOf(one)),
    onclick: () => { location.hash = `#/sample/${encodeURIComponent(sample.id)}/${keyOf(one)}`; },
  }, `${one.a} `, sign(one.s))));
}));

const samplePage = async (id, chosen) => {
  const find = () => index.samples.find((sample) => sample.id === id);
  if (!find()) return h('div', {}, h('h1', {}, id), h('p', { class: 'missing' }, 'There is no attempt at this sample.'));
  const details = await loadSample(id).catch((error) => ({ attempts: [], functions: [], problem: error.message }));
  const sample = find();
  const current = details.attempts.find((one) => keyOf(one) === chosen) || details.attempts[0];
  const place = index.samples.indexOf(sample);
  const step = (by, word) => index.samples[place + by] && h('a', { href: `#/sample/${encodeURIComponent(index.samples[place + by].id)}`, rel: by < 0 ? 'prev' : 'next' }, `${word}: ${index.samples[place + by].id}`);
  const masked = (details.functions || []).map((one) => one.at).join(', ');
  return h('div', {}, h('h1', {}, `Sample ${id}`), h('p', { class: 'quiet' }, sample.extent, masked && `: ${masked}`),
    h('p', { class: 'steps' }, step(-1, 'Previous'), step(1, 'Next')),
    paperBlock(index.papers[sample.item], sample.item),
    details.problem && h('p', { class: 'missing' }, prose(`What happened at this sample cannot be shown: ${details.problem}.`)),
    details.asked && [h('h2', {}, 'What was asked'), h('pre', {}, details.asked)],
    (details.functions || []).length > 0 && [h('h2', {}, details.heading), details.functions.map((one) => h('details', { open: true }, h('summary', {}, h('code', {}, one.at), ' original (−) and as masked (+)'), diffBlock(one.original, one.masked)))],
    h('h2', {}, 'Attempts'), attemptButtons(sample, current && keyOf(current)),
    current ? attemptBlock(current, details.functions) : h('p', { class: 'missing' }, 'No attempt can be shown.'));
};

// A trajectory as a conversation.
const isError = (event) => {
  if (['format_error', 'call_failed', 'call_refused'].includes(event.event)) return true;
  if (event.event !== 'observation') return false;
  const said = text(event.content || '');
  return /^(exit code [1-9]|killed by signal|stopped because|error\b)/i.test(said) || said.includes('Traceback (most recent call last)');
};

const call = (name, given) => {
  const shown = given && typeof given === 'object' ? Object.values(given).map((value) => text(value)).join(' ') : text(given ?? '');
  return [h('b', {}, name || '?'), ' ', h('code', {}, short(shown.replace(/\s+/g, ' '), 90))];
};
const folded = (heading, ...content) => h('details', {}, h('summary', {}, heading), content);
const values = (given) => (given && typeof given === 'object' && !Array.isArray(given)
  ? Object.entries(given).map(([key, value]) => [h('div', { class: 'quiet' }, key), h('pre', {}, text(value))])
  : h('pre', {}, text(given ?? '')));

const WHO = { system: 'System', user: 'Harness', assistant: 'Model', tool: 'Tool' };
const eventBlock = (event) => {
  const at = typeof event.at === 'number' ? ` · ${seconds(event.at)}` : '';
  const block = (kind, who, ...content) => h('div', { class: `event ${kind}${isError(event) ? ' error' : ''}` }, h('div', { class: 'who' }, who, at), content);
  const usage = event.usage ? ` · ${event.usage.input} tokens read, ${event.usage.output} written${event.usage.reasoning ? `, ${event.usage.reasoning} of them reasoning` : ''} · ${dollars(event.cost)}` : '';
  switch (event.event) {
    case 'started':
      return block('harness', 'Begun', h('div', {}, `${event.agent || ''} ${event.model || ''} in sandbox ${event.sandbox || ''}`));
    case 'message': {
      const said = text(event.content ?? '');
      return block('user', WHO[event.role] || text(event.role ?? ''), said.length > 400 ? folded(short(said.split('\n')[0], 120), h('pre', {}, said)) : h('pre', {}, said));
    }
    case 'reply':
      return block('assistant', `Model, step ${event.step}${usage} · waited ${seconds(event.seconds)}`,
        event.reasoning && folded('reasoning', h('pre', {}, text(event.reasoning))),
        event.text && h('pre', {}, text(event.text)),
        (event.tool_calls || []).map((one) => folded(['calls ', call(one.name, one.arguments)], values(one.arguments))));
    case 'observation': {
      const said = text(event.content ?? '');
      return block('tool', `${event.tool || 'Tool'} · ${seconds(event.seconds)}`,
        folded([call(event.tool, event.arguments), h('br', {}), short(said.split('\n').slice(0, 2).join(' · '), 140)], values(event.arguments), h('div', { class: 'quiet' }, 'shows'), h('pre', {}, said)));
    }
    case 'asked':
      return block('user', `The program asks, call ${event.call} · ${event.kept} messages as before`,
        (event.messages || []).map((one) => folded(`${WHO[one.role] || text(one.role ?? '')}: ${short(text(one.content ?? '').split('\n')[0], 120)}`,
          h('pre', {}, text(one.content ?? '')), (one.tool_calls || []).map((tool) => values(tool.arguments)))));
    case 'call_refused':
      return block('harness', 'A call was refused', h('pre', {}, text(event.what ?? '')));
    case 'program':
      return block('harness', `The program ended · ${seconds(event.seconds)} without its model`,
        folded(`exit ${JSON.stringify(event.exit)}`, h('pre', {}, text(event.stdout ?? '')), event.stderr && h('pre', {}, text(event.stderr))));
    case 'tool_model_call':
      return block('assistant', `Model, asked by ${event.tool}${usage}`, folded(short(text(event.text ?? ''), 100), h('pre', {}, text(event.text ?? ''))));
    case 'call_failed':
      return block('harness', 'A call of the model failed', h('pre', {}, text(event.what ?? '')));
    case 'format_error':
      return block('harness', 'Not a readable step', h('pre', {}, text(event.what ?? '')));
    case 'answer':
      return block('assistant', 'Answer', h('pre', {}, text(event.raw ?? '')));
    case 'ended':
      return block('harness', 'Ended', h('div', {}, `${text(event.end ?? '').replaceAll('_', ' ')}${event.detail ? `: ${event.detail}` : ''}`));
    case 'verification':
      return block('harness', `Verification of ${event.experiment} · ${seconds(event.seconds)}`, folded(`exit ${JSON.stringify(event.exit)}`, h('pre', {}, text(event.result ?? 'no result')), event.stderr && h('pre', {}, text(event.stderr))));
    default:
      return block('harness', text(event.event ?? 'unknown event'), h('pre', {}, text(event)));
  }
};

/** Puts the matches of a lower-case text into marks; tells how many. */
const markText = (root, wanted) => {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  let count = 0;
  for (let node of nodes) {
    let at;
    while ((at = node.data.toLowerCase().indexOf(wanted)) >= 0 && node.data.toLowerCase().length === node.data.length) {
      const hit = node.splitText(at);
      const rest = hit.splitText(wanted.length);
      hit.replaceWith(h('mark', {}, hit.data));
      node = rest;
      count++;
    }
  }
  return count;
};

const trajectory = (events, problems) => {
  const list = h('div', { class: 'trajectory' });
  const found = h('span', { class: 'quiet', role: 'status' });
  let hits = [];
  let hit = -1;
  const draw = (wanted) => {
    list.replaceChildren(...events.map(eventBlock));
    hits = [];
    hit = -1;
    found.textContent = '';
    if (!wanted) return;
    let count = 0;
    for (const block of list.children) {
      const here = markText(block, wanted);
      count += here;
      block.hidden = here === 0;
      for (const mark of block.querySelectorAll('mark')) {
        for (let up = mark.closest('details'); up && list.contains(up); up = up.parentElement.closest('details')) up.open = true;
        hits.push(mark);
      }
    }
    found.textContent = `${count} found in ${[...list.children].filter((block) => !block.hidden).length} of ${events.length} events`;
  };
  const show = (block) => {
    for (const other of list.querySelectorAll('.here')) other.classList.remove('here');
    block.classList.add('here');
    for (const fold of block.querySelectorAll('details')) fold.open = true;
    block.scrollIntoView({ block: 'start' });
  };
  const search = h('input', { type: 'search', placeholder: 'Search the trajectory', 'aria-label': 'Search the trajectory' });
  search.addEventListener('input', () => draw(search.value.toLowerCase()));
  search.addEventListener('keydown', (key) => {
    if (key.key !== 'Enter' || hits.length === 0) return;
    hit = (hit + (key.shiftKey ? hits.length - 1 : 1)) % hits.length;
    hits[hit].scrollIntoView({ block: 'center' });
  });
  const first = events.findIndex(isError);
  const fold = (open) => () => { for (const one of list.querySelectorAll('details')) one.open = open; };
  draw('');
  return h('section', { class: 'conversation' },
    h('div', { class: 'tools' }, search,
      h('button', { type: 'button', class: 'first-error', disabled: first < 0, onclick: () => { search.value = ''; draw(''); show(list.children[first]); } }, first < 0 ? 'No error' : 'First error'),
      h('button', { type: 'button', onclick: fold(true) }, 'Unfold all'),
      h('button', { type: 'button', onclick: fold(false) }, 'Fold all'), found),
    (problems || []).map((problem) => h('p', { class: 'missing' }, problem)),
    events.length === 0 && h('p', { class: 'missing' }, 'There are no events.'), list);
};

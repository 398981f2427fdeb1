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

/** How a command ended, in words. */
const exitWords = (exit) => {
  if (exit === 'timed_out') return 'timed out';
  if (exit === 'disk_full') return 'stopped at the disk limit';
  if (exit && exit.code !== undefined) return `exit code ${exit.code}`;
  if (exit && exit.signal !== undefined) return `killed by signal ${exit.signal}`;
  return `exit ${JSON.stringify(exit)}`;
};

/** The first three lines of a text, without blank lines and the headings `stdout:` and `stderr:`. */
const beginning = (said, most) => short(said.split('\n').filter((line) => line.trim() && !/^(stdout|stderr):$/.test(line)).slice(0, 3).join(' · '), most);

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
        folded([call(event.tool, event.arguments), h('br', {}), beginning(said, 160)], values(event.arguments), h('div', { class: 'quiet' }, 'shows'), h('pre', {}, said)));
    }
    case 'asked':
      return block('user', `The program asks, call ${event.call} · ${event.kept} messages as before`,
        (event.messages || []).map((one) => folded(`${WHO[one.role] || text(one.role ?? '')}: ${short(text(one.content ?? '').split('\n')[0], 120)}`,
          h('pre', {}, text(one.content ?? '')), (one.tool_calls || []).map((tool) => values(tool.arguments)))));
    case 'call_refused':
      return block('harness', 'A call was refused', h('pre', {}, text(event.what ?? '')));
    case 'program':
      return block('harness', `The program ended · ${seconds(event.seconds)} besides waits for the model`,
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
      return block('harness', `Verification of ${event.experiment} · ${seconds(event.seconds)}`, folded([exitWords(event.exit), ' ', h('code', {}, short(plain(event.result ?? 'no result'), 90))], h('pre', {}, text(event.result ?? 'no result')), event.stderr && h('pre', {}, text(event.stderr))));
    default:
      return block('harness', text(event.event ?? 'unknown event'), h('pre', {}, text(event)));
  }
};

/** Wraps each match of a lower-case text in a `mark` element; returns the number of matches. */
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

/**
 * Creates a trajectory's section. The section's method `grow` receives all current events and appends the new ones; it
 * returns false if there are fewer events than shown, because the attempt was then started again.
 */
const trajectory = (events, problems) => {
  const list = h('div', { class: 'trajectory' });
  const found = h('span', { class: 'quiet', role: 'status' });
  const nothing = h('p', { class: 'missing' }, 'There are no events.');
  const search = h('input', { type: 'search', placeholder: 'Search the trajectory', 'aria-label': 'Search the trajectory' });
  const jump = h('button', { type: 'button', class: 'first-error', onclick: () => { search.value = ''; draw(); show(list.children[events.findIndex(isError)]); } });
  let hits = [];
  let hit = -1;
  const add = (fresh) => {
    const wanted = search.value.toLowerCase();
    for (const event of fresh) {
      const block = eventBlock(event);
      list.append(block);
      if (!wanted) continue;
      block.hidden = markText(block, wanted) === 0;
      for (const mark of block.querySelectorAll('mark')) {
        for (let up = mark.closest('details'); up && list.contains(up); up = up.parentElement.closest('details')) up.open = true;
        hits.push(mark);
      }
    }
    found.textContent = wanted ? `${hits.length} found in ${[...list.children].filter((block) => !block.hidden).length} of ${events.length} events` : '';
    const none = !events.some(isError);
    jump.disabled = none;
    jump.textContent = none ? 'No error' : 'First error';
    nothing.hidden = events.length > 0;
  };
  const draw = () => {
    list.replaceChildren();
    hits = [];
    hit = -1;
    add(events);
  };
  const show = (block) => {
    for (const other of list.querySelectorAll('.here')) other.classList.remove('here');
    block.classList.add('here');
    for (const fold of block.querySelectorAll('details')) fold.open = true;
    block.scrollIntoView({ block: 'start' });
  };
  search.addEventListener('input', draw);
  search.addEventListener('keydown', (key) => {
    if (key.key !== 'Enter' || hits.length === 0) return;
    hit = (hit + (key.shiftKey ? hits.length - 1 : 1)) % hits.length;
    hits[hit].scrollIntoView({ block: 'center' });
  });
  const fold = (open) => () => { for (const one of list.querySelectorAll('details')) one.open = open; };
  draw();
  const section = h('section', { class: 'conversation' },
    h('div', { class: 'tools' }, search, jump,
      h('button', { type: 'button', onclick: fold(true) }, 'Unfold all'),
      h('button', { type: 'button', onclick: fold(false) }, 'Fold all'), found),
    (problems || []).map((problem) => h('p', { class: 'missing' }, prose(problem))), nothing, list);
  section.grow = (now) => {
    if (now.length < events.length) return false;
    const fresh = now.slice(events.length);
    events = now;
    if (fresh.length > 0) add(fresh);
    return true;
  };
  return section;
};

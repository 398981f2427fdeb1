// Shows the page that the address names, and updates it while a run is in progress.
let turn = 0;
/** The section of the overview that an address names; null if it names none. */
const sectionOf = (hash) => {
  const id = hash.replace(/^#\/?/, '');
  const found = id && document.getElementById(id);
  return found && $('overview').contains(found) ? found : null;
};
const route = async () => {
  const mine = ++turn;
  const parts = location.hash.replace(/^#\/?/, '').split('/').map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  const pages = {
    samples: () => samplesPage(...parts.slice(1)),
    sample: () => samplePage(parts[1], parts[2]),
    compare: () => comparePage(Number(parts[1] || NaN), Number(parts[2] || NaN), parts[3]),
  };
  const page = pages[parts[0]];
  const overview = $('overview');
  if (!page) {
    overview.hidden = false;
    $('page').hidden = true;
    markCut();
    document.body.dataset.shown = location.hash;
    const target = sectionOf(location.hash);
    if (target) {
      if (target.tagName === 'DETAILS') target.open = true;
      target.scrollIntoView();
    }
    return;
  }
  let content;
  try {
    content = await page();
  } catch (error) {
    content = h('p', { class: 'missing' }, `This page cannot be shown: ${error.message}.`);
  }
  // The user has gone to another page while this page was loading.
  if (mine !== turn) return;
  $('page').replaceChildren(content);
  $('page').hidden = false;
  overview.hidden = true;
  markCut();
  document.body.dataset.shown = location.hash;
};

/**
 * All folds (`details` elements) below an element, each with a name that stays the same when the page is drawn again:
 * heading, section, and a number that distinguishes folds with the same heading.
 */
const namedFolds = (root) => {
  const seen = new Map();
  return [...root.querySelectorAll('details')].map((fold) => {
    const name = fold.firstElementChild.textContent + (fold.closest('section[id]') || { id: '' }).id;
    seen.set(name, (seen.get(name) || 0) + 1);
    return [`${name} ${seen.get(name)}`, fold];
  });
};

/** Draws a part of the page again; folds that were open stay open. */
const keepingFolds = async (root, draw) => {
  const were = new Map(namedFolds(root).map(([name, fold]) => [name, fold.open]));
  await draw();
  for (const [name, fold] of namedFolds(root)) if (were.has(name)) fold.open = were.get(name);
};

/** Updates the address, which refers to agents by index, after new agents have shifted the indexes. */
const renumber = (before) => {
  const names = before.map((one) => one.name);
  const moved = (c) => { const now = index.contenders.findIndex((one) => one.name === names[c]); return now < 0 ? c : now; };
  const parts = location.hash.split('/');
  if (parts[1] === 'sample' && parts[3]) parts[3] = parts[3].replace(/^\d+/, moved);
  if (parts[1] === 'compare') for (const at of [2, 3]) if (parts[at]) parts[at] = moved(parts[at]);
  // The key of the shown attempt also contains an index, even if the address names no attempt.
  const block = document.querySelector('#page .attempt');
  if (block) block.dataset.key = block.dataset.key.replace(/^\d+/, moved);
  const hash = parts.join('/');
  if (hash === location.hash) return;
  history.replaceState(null, '', hash);
  document.body.dataset.shown = hash;
};

/** Asks the server for the overview and the index as they are now. */
const renew = async () => {
  const answer = await fetch('page');
  if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
  const page = await answer.json();
  const before = index.contenders;
  index = widened(page.index);
  renumber(before);
  // This markup comes from the server, which escapes all untrusted text; scripts in it would not run in any case.
  const fresh = new DOMParser().parseFromString(page.overview, 'text/html');
  await keepingFolds($('overview'), () => $('overview').replaceChildren(...fresh.body.childNodes));
  dressTables($('overview'));
};

const redraw = async () => {
  const [left, top] = [scrollX, scrollY];
  const typed = (document.querySelector('.conversation input') || { value: '' }).value;
  await keepingFolds($('page'), route);
  const search = document.querySelector('.conversation input');
  if (typed && search) {
    search.value = typed;
    search.dispatchEvent(new Event('input'));
  }
  scrollTo(left, top);
};

/**
 * Updates the shown page to the current state of the run. Lists are drawn again. A shown trajectory stays as it is, but
 * gets new events while its attempt is in progress.
 */
const followPage = async (changed) => {
  const page = $('page').firstElementChild;
  const [, kind, id, , sample] = location.hash.split('/');
  if ($('page').hidden || !page) return;
  if (kind === 'samples' && changed) page.renew();
  if (kind === 'compare' && changed && sample === undefined) await redraw();
  if (kind !== 'sample' || !id) return;
  const entry = index.samples.find((one) => one.id === decodeURIComponent(id));
  const block = page.querySelector('.attempt');
  if (!entry) return;
  if (!block) { if (changed) await redraw(); return; }
  const { key, state } = block.dataset;
  if (changed) page.querySelector('.attempts').replaceWith(attemptButtons(entry, key));
  if (state !== 'begun') return;
  const details = await loadSample(entry.id);
  const one = details.attempts.find((it) => keyOf(it) === key);
  // Draw everything again if the attempt has ended or was started again.
  if (!one || one.state !== state || !block.querySelector('.conversation').grow(one.events || [])) await redraw();
};

// Stamp of the index from which the page was drawn. Loading details may renew the index without drawing the page again.
let shownAs = index.live;
const follow = async () => {
  try {
    const answer = await fetch('state');
    if (!answer.ok) throw new Error(String(answer.status));
    const state = await answer.json();
    const changed = state.stamp !== index.live;
    if (changed) await renew();
    await followPage(changed || shownAs !== index.live);
    shownAs = index.live;
    const ago = state.changed === null ? '' : `, last change ${state.changed < 90 ? `${state.changed} s` : `${Math.round(state.changed / 60)} min`} ago`;
    $('live').textContent = `${state.done}${state.planned ? ` of ${state.planned}` : ''} attempts stored${ago}`;
  } catch {
    $('live').textContent = 'the server does not answer';
  }
  setTimeout(follow, 2000);
};

/**
 * After a change to another page, `arrive` puts the page's heading into the window's title and focuses it, so that
 * screen readers read it out. Within a page, the focus stays where it is.
 */
const title = document.title;
const pageOf = () => location.hash.split('/').slice(1, 3).join('/');
let were = pageOf();
const arrive = () => {
  const heading = ($('page').hidden ? $('overview') : $('page')).querySelector('h1');
  document.title = heading && !$('page').hidden ? `${heading.textContent} · ${title}` : title;
  if (!heading || pageOf() === were) return;
  were = pageOf();
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
};

// Open all folds for printing, because nobody can open them on paper.
addEventListener('beforeprint', () => {
  for (const fold of document.querySelectorAll('details:not([open])')) {
    if (fold.classList.contains('lazy') && fold.children.length < 2) continue;
    fold.dataset.folded = '';
    fold.open = true;
  }
});
addEventListener('afterprint', () => {
  for (const fold of document.querySelectorAll('details[data-folded]')) {
    fold.open = false;
    delete fold.dataset.folded;
  }
});

dressTables(document);
addEventListener('hashchange', async () => { await route(); arrive(); if (!sectionOf(location.hash)) scrollTo(0, 0); });
route().then(arrive);
if (index.live) follow();

// Which page is shown, and, for a run under way, what has changed.
let turn = 0;
const route = async () => {
  const mine = ++turn;
  const parts = location.hash.replace(/^#\/?/, '').split('/').map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  const pages = {
    samples: () => samplesPage(),
    sample: () => samplePage(parts[1], parts[2]),
    compare: () => comparePage(Number(parts[1] || NaN), Number(parts[2] || NaN), parts[3]),
  };
  const page = pages[parts[0]];
  const overview = $('overview');
  if (!page) {
    overview.hidden = false;
    $('page').hidden = true;
    document.body.dataset.shown = location.hash;
    const target = parts[0] && document.getElementById(parts[0]);
    if (target && overview.contains(target)) target.scrollIntoView();
    return;
  }
  let content;
  try {
    content = await page();
  } catch (error) {
    content = h('p', { class: 'missing' }, `This page cannot be shown: ${error.message}.`);
  }
  // A later click has overtaken this one.
  if (mine !== turn) return;
  $('page').replaceChildren(content);
  $('page').hidden = false;
  overview.hidden = true;
  document.body.dataset.shown = location.hash;
};

const refresh = async () => {
  const answer = await fetch('state');
  if (!answer.ok) throw new Error(String(answer.status));
  const state = await answer.json();
  if (state.stamp === index.live) return state;
  const page = await (await fetch('page')).json();
  index = page.index;
  // The server's own markup, in which all texts of strangers are escaped; scripts in it would not run in any case.
  const fresh = new DOMParser().parseFromString(page.overview, 'text/html');
  const folds = (root) => [...root.querySelectorAll('details')];
  const name = (fold) => fold.firstElementChild.textContent + (fold.closest('section') || { id: '' }).id;
  const open = new Set(folds($('overview')).filter((fold) => fold.open).map(name));
  $('overview').replaceChildren(...fresh.body.childNodes);
  for (const fold of folds($('overview'))) if (open.has(name(fold))) fold.open = true;
  dressTables($('overview'));
  // Lists follow; a trajectory that is being read stays as it is.
  if (!/^#\/(sample|compare)\//.test(location.hash)) await redraw();
  return state;
};

const redraw = async () => {
  const [left, top] = [scrollX, scrollY];
  await route();
  scrollTo(left, top);
};

// An attempt under way: its page follows, unless something in it is being searched for.
let seen = '';
const followAttempt = async () => {
  const [, id, key] = location.hash.match(/^#\/sample\/([^/]+)\/?(.*)$/) || [];
  const sample = id && index.samples.findIndex((one) => one.id === decodeURIComponent(id));
  if (!id || sample < 0 || !index.samples[sample].attempts.some((one) => one.s === 'begun' && (!key || key === `${one.c}.${one.a}`))) return;
  const details = await loadSample(sample);
  const now = `${location.hash} ${details.attempts.map((one) => (one.events || []).length)}`;
  const search = document.querySelector('.conversation input');
  if (now !== seen && !(search && search.value)) await redraw();
  seen = now;
};

const follow = async () => {
  try {
    const state = await refresh();
    await followAttempt();
    const ago = state.changed === null ? '' : `, last change ${state.changed < 90 ? `${state.changed} s` : `${Math.round(state.changed / 60)} min`} ago`;
    $('live').textContent = `${state.done}${state.planned ? ` of ${state.planned}` : ''} attempts stored${ago}`;
  } catch {
    $('live').textContent = 'the server does not answer';
  }
  setTimeout(follow, 2000);
};

dressTables(document);
addEventListener('hashchange', async () => { await route(); if (!/^#\/(results|pass|scaling|context|ends|diff)/.test(location.hash)) scrollTo(0, 0); });
route();
if (index.live) follow();

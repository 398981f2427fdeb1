// Everything that a model, an agent or a repo wrote is put into the page as text, never as markup.

/**
 * Adds `attempts` to each sample of the index: objects made from `tries`, a flat list of numbers (contender, attempt,
 * state and end of each attempt).
 */
const widened = (index) => {
  for (const sample of index.samples) {
    sample.attempts = [];
    for (let i = 0; i < sample.tries.length; i += 4) sample.attempts.push({ c: sample.tries[i], a: sample.tries[i + 1], s: index.states[sample.tries[i + 2]], e: index.ends[sample.tries[i + 3]] });
  }
  return index;
};
let index = widened(JSON.parse(document.getElementById('index').textContent));
const $ = (id) => document.getElementById(id);

/** Characters that reverse or hide the text around them; `unhidden` replaces them by visible escapes. */
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const unhidden = (value) => (typeof value === 'string' ? value.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`) : value);

/** An element with properties and children; strings become text. */
const h = (tag, properties, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'class') element.className = value;
    else element.setAttribute(name, value === true ? '' : name === 'title' || name === 'aria-label' ? unhidden(value) : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) element.append(unhidden(child));
  }
  // Make elements that may scroll reachable by keyboard.
  if (/\b(scroll|code|text|sides)\b/.test(element.className)) element.tabIndex = 0;
  return element;
};
/** Lets a long name wrap after separators such as `/` and `_`, and after 32 characters without a separator. */
const breakable = (name) => name.split(/(?<=[/._:+=@\-|](?=\p{L})|[^/._:+=@\-|\s]{32})/u).flatMap((part, place) => (place > 0 ? [document.createElement('wbr'), part] : [part]));
/** Shows text between backticks as code; a last backtick without a closing backtick stays as text. */
const prose = (value) => value.split('`').map((part, place, all) => (place % 2 === 0 ? part : place + 1 < all.length ? h('code', {}, part) : `\`${part}`));
const sideways = () => h('p', { class: 'sideways', 'aria-hidden': 'true' }, 'scroll sideways for more →');
/** Marks the tables that are wider than the window. */
const markCut = () => { for (const one of document.querySelectorAll('.scroll')) if (one.clientWidth > 0) one.classList.toggle('cut', one.scrollWidth > one.clientWidth + 1); };
const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 1));
const short = (value, most) => (value.length > most ? value.slice(0, most - 1) + '…' : value);
const seconds = (value) => (value >= 90 ? `${(value / 60).toFixed(1)} min` : `${(value || 0).toFixed(1)} s`);
const dollars = (value) => `$${(value || 0).toFixed(value > 0 && value < 0.1 ? 4 : 2)}`;

let saying;
const say = (what) => {
  $('said').textContent = what;
  clearTimeout(saying);
  saying = setTimeout(() => { $('said').textContent = ''; }, 2500);
};

const SIGNS = { pass: '✓', fail: '✗', unsupported: '⚠', lost: '∅', begun: '…' };
const WORDS = { pass: 'pass', fail: 'fail', unsupported: 'unsupported', lost: 'lost to infrastructure', begun: 'not finished' };
const sign = (state) => h('span', { class: state, title: WORDS[state] || state }, SIGNS[state] || '?');
/** Names of the units that a sample withholds, such as masked functions. */
const unitNames = (sample) => {
  const names = (index.papers[sample.item] || {}).units || {};
  return (sample.units || []).map((place) => names[place]).filter(Boolean);
};
const unitsLine = (sample) => {
  const names = unitNames(sample);
  return names.length > 0 && h('div', { class: 'units', title: names.join('\n') }, breakable(names.map((name) => name.replace(/^.*::/, '')).join(', ')));
};
const contender = (place) => (index.contenders[place] || { name: '?' }).name;

// Details are packed (raw deflate, base64) in this file or in files beside it; a server sends them as plain JSON.
const known = new Map();
const awaited = new Map();
window.autoexperimentChunk = (name, packed) => { if (awaited.has(name)) awaited.get(name)(packed); };

const unpack = async (packed) => {
  const bytes = Uint8Array.from(atob(packed.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return JSON.parse(await new Response(stream).text());
};

const beside = (name) => new Promise((resolve, reject) => {
  awaited.set(name, resolve);
  const script = document.createElement('script');
  script.src = `${index.beside}/${name}.js`;
  script.onerror = () => reject(new Error(`the folder "${decodeURIComponent(index.beside)}" with the trajectories is not beside this file`));
  document.head.append(script);
});

const fetched = async (name) => {
  const answer = await fetch(`details/${name}`);
  if (answer.status === 404) return {};
  if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
  return answer.json();
};

const load = (name) => {
  if (index.live) return fetched(name);
  if (!known.has(name)) {
    const inside = $(`chunk-${name}`);
    const packed = inside ? Promise.resolve(inside.textContent) : index.beside ? beside(name) : Promise.reject(new Error('it is not in this file'));
    known.set(name, packed.then(unpack));
  }
  return known.get(name);
};

/**
 * Loads the details of the sample or paper `id`. Their name, which `nameOf()` returns, contains the position of `id` in
 * the index. The position may be wrong: a server may have a newer index, and a folder beside this page may belong to
 * another report. So the loaded details contain their own id, and a server's also their contenders, those of a file the
 * page's key. If these do not match, this function renews the index from the server and tries again.
 */
const loadOf = async (id, nameOf) => {
  for (let tries = 0; tries < 6; tries++) {
    const name = nameOf();
    const found = name ? await load(name) : {};
    const names = index.contenders.map((one) => one.name);
    const same = index.live ? !found.contenders || JSON.stringify(found.contenders) === JSON.stringify(names) : found.page === index.key;
    if (found.id === id && same) return found;
    if (!index.live) throw new Error(`the folder "${decodeURIComponent(index.beside || '')}" belongs to another report`);
    await renew();
  }
  throw new Error('the run no longer has it, or changes faster than this page can follow');
};

/** Loads a sample's details with its trajectories, which may be stored separately from the other details. */
const loadSample = async (id) => {
  const named = (letter) => () => {
    const place = index.samples.findIndex((sample) => sample.id === id);
    return place >= 0 && `${letter}${place}`;
  };
  const details = await loadOf(id, named('s'));
  if (index.live || details.whole) return details;
  try {
    const { events } = await loadOf(id, named('t'));
    details.attempts.forEach((one, number) => { one.events = events[number]; });
    details.whole = true;
  } catch (error) {
    for (const one of details.attempts) one.problems = [...one.problems.filter((problem) => !problem.startsWith('The trajectory')), `The trajectory cannot be shown: ${error.message}.`];
  }
  return details;
};

// Code: Python with coloured syntax, and the diff of two texts.
const KEYWORDS = new Set(('False None True and as assert async await break class continue def del elif else except finally for from global if ' +
  'import in is lambda nonlocal not or pass raise return try while with yield').split(' '));
const TOKEN = /("""|''')|(#.*)|([rbfuRBFU]{0,2}(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?))|(\b\d[\w.]*)|(\w+)|(\s+|.)/g;

/**
 * Returns the coloured pieces of a line, and the quote of the multi-line string that is still open at its end. `open`
 * is the quote of a multi-line string that began before the line.
 */
const highlightLine = (line, open) => {
  const out = [];
  let rest = line;
  while (rest !== '') {
    if (open) {
      const end = rest.indexOf(open);
      const cut = end < 0 ? rest.length : end + 3;
      out.push(h('span', { class: 'st' }, rest.slice(0, cut)));
      rest = rest.slice(cut);
      if (end < 0) return [out, open];
      open = null;
      continue;
    }
    TOKEN.lastIndex = 0;
    const found = TOKEN.exec(rest);
    const [all, quote, comment, string, number, word] = found;
    if (quote) {
      open = quote;
      out.push(h('span', { class: 'st' }, quote));
    } else if (comment) out.push(h('span', { class: 'co' }, comment));
    else if (string) out.push(h('span', { class: 'st' }, string));
    else if (number) out.push(h('span', { class: 'nu' }, number));
    else if (word && KEYWORDS.has(word)) out.push(h('span', { class: 'kw' }, word));
    else out.push(all);
    rest = rest.slice(all.length);
  }
  return [out, open];
};

/** Lines of both texts, compared by their longest common subsequence: removed ('-'), added ('+') or common (' '). */
const diffLines = (before, after) => {
  const a = before.split('\n');
  const b = after.split('\n');
  if (a.length * b.length > 4e6) return [...a.map((line) => ['-', line]), ...b.map((line) => ['+', line])];
  const width = b.length + 1;
  const best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      best[i * width + j] = a[i] === b[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const out = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { out.push([' ', a[i]]); i++; j++; }
    else if (i < a.length && (j === b.length || best[(i + 1) * width + j] >= best[i * width + j + 1])) out.push(['-', a[i++]]);
    else out.push(['+', b[j++]]);
  }
  return out;
};

const CLASSES = { '-': 'cut', '+': 'add', ' ': null, '@': 'place' };
const diffBlock = (before, after) => {
  // Track the open string of each text separately, because a docstring may end in only one of them.
  let left = null;
  let right = null;
  return h('div', { class: 'code' }, diffLines(before, after).map(([tag, line]) => {
    const [pieces, open] = highlightLine(line, tag === '-' ? left : right);
    if (tag !== '+') left = tag === ' ' ? open : open;
    if (tag !== '-') right = open;
    return h('div', { class: CLASSES[tag] }, `${tag} `, pieces);
  }));
};

const patchBlock = (patch) => h('div', { class: 'code' }, patch.replace(/\n$/, '').split('\n').map((line) => {
  const tag = /^(diff |index |--- |\+\+\+ |@@|new file|deleted file|old mode|new mode)/.test(line) ? '@' : line[0];
  return h('div', { class: CLASSES[tag] }, line || ' ');
}));

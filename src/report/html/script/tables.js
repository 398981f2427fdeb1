// Tables: right-aligned numbers, sorting by column, and buttons that copy a table.
const isNumber = (cell) => /^[-+<]?[$]?[\d.,]+%?( \[.*\]| too few)?$/.test(cell);

/** For each column, whether all cells below its heading are numbers or empty. */
const numberColumns = (rows) => rows[0].map((_, place) => rows.length > 1 && rows.slice(1).every((row) => row[place] === '' || row[place] === '–' || isNumber(row[place])));

/** A cell's text, without parts that are shown only on narrow screens. */
const cellText = (cell) => {
  if (!cell.querySelector('.narrow')) return cell.textContent.trim();
  const copy = cell.cloneNode(true);
  for (const one of copy.querySelectorAll('.narrow')) one.remove();
  return copy.textContent.trim();
};
const cells = (table) => [...table.rows].map((row) => [...row.cells].map(cellText));

/** The sorted column and direction of each table by `tableName`, so that tables stay sorted when drawn again. */
const sortedBy = new Map();
const tableName = (table) => `${(table.closest('section[id]') || { id: '' }).id} ${cellText(table.rows[0].cells[0])}`;

/** Sorts a table's rows by a column: numbers by value, and after them cells without a number. */
const sortTable = (table, { column, way }) => {
  const body = table.tBodies[0];
  const key = (row) => cellText(row.cells[column]);
  const number = (text) => (/^[-+<$]*[\d.]/.test(text) ? Number.parseFloat(text.replace(/[$,+<]/g, '')) : NaN);
  const compare = (a, b) => {
    const [one, other] = [key(a), key(b)];
    const [x, y] = [number(one), number(other)];
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    return way * (Number.isNaN(x) ? one.localeCompare(other) : x - y);
  };
  body.append(...[...body.rows].sort(compare));
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    if (place === column) head.setAttribute('aria-sort', way > 0 ? 'ascending' : 'descending');
    else head.removeAttribute('aria-sort');
  });
};

const makeSortable = (table) => {
  const name = tableName(table);
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const label = [...head.childNodes];
    head.replaceChildren(h('button', {
      type: 'button',
      title: 'Sort',
      onclick: () => {
        const before = sortedBy.get(name);
        // The first click sorts numbers in descending order, because readers mostly look for the largest.
        const first = head.classList.contains('number') ? -1 : 1;
        sortedBy.set(name, { column, way: before && before.column === column ? -before.way : first });
        sortTable(table, sortedBy.get(name));
      },
    }, label));
  });
  if (sortedBy.has(name)) sortTable(table, sortedBy.get(name));
};

const formats = {
  CSV: (rows) => rows.map((row) => row.map((cell) => {
    // Spreadsheets treat text that begins with one of these characters as a formula, unless the text is a number.
    const safe = /^[=+\-@＝＋－＠]/.test(cell) && !isNumber(cell) ? `'${cell}` : cell;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }).join(',')).join('\n'),
  Markdown: (rows) => {
    const line = (row) => `| ${row.map((cell) => cell.replaceAll('\\', '\\\\').replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ')).join(' | ')} |`;
    return [line(rows[0]), `|${rows[0].map(() => '---|').join('')}`, ...rows.slice(1).map(line)].join('\n');
  },
  LaTeX: (rows) => {
    const special = { '\\': '\\textbackslash{}', '~': '\\textasciitilde{}', '^': '\\textasciicircum{}', '<': '\\textless{}', '>': '\\textgreater{}' };
    const escape = (cell) => cell.replace(/[\\{}$&#_%~^<>]/g, (c) => special[c] || `\\${c}`);
    const line = (row) => `${row.map(escape).join(' & ')} \\\\`;
    const columns = numberColumns(rows).map((numeric) => (numeric ? 'r' : 'l')).join('');
    return [`\\begin{tabular}{${columns}}`, '\\toprule', line(rows[0]), '\\midrule', ...rows.slice(1).map(line), '\\bottomrule', '\\end{tabular}'].join('\n');
  },
};

const copy = async (what) => {
  try {
    await navigator.clipboard.writeText(what);
    return true;
  } catch {
    // Some browsers have no clipboard interface for pages opened from a file; use the older command there.
    const area = h('textarea', {});
    area.value = what;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
};

const dressTables = (root) => {
  for (const table of root.querySelectorAll('table.copy:not(.dressed)')) {
    table.classList.add('dressed');
    const rows = cells(table);
    const numeric = numberColumns(rows);
    for (const row of table.rows) [...row.cells].forEach((cell, place) => cell.classList.toggle('number', numeric[place]));
    if (rows.length > 2) makeSortable(table);
    const button = (format) => h('button', {
      type: 'button',
      onclick: async () => {
        const what = formats[format](cells(table));
        table.dataset.copied = what;
        say((await copy(what)) ? `copied as ${format}` : 'this browser does not let the page copy');
      },
    }, format);
    const below = table.parentElement.nextElementSibling;
    (below && below.className === 'sideways' ? below : table.parentElement).after(h('div', { class: 'tools' }, h('span', { class: 'quiet' }, 'Copy as'), Object.keys(formats).map(button)));
  }
  markCut();
};
addEventListener('resize', () => markCut());

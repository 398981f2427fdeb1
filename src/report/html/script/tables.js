// Tables: numbers to the right, and buttons that copy them.
const isNumber = (cell) => /^[-+]?[$]?[\d.,]+%?( \[.*\])?$/.test(cell);

const cells = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));

const formats = {
  CSV: (rows) => rows.map((row) => row.map((cell) => {
    // A spreadsheet takes what begins like this for a formula, unless it is a number.
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
    const columns = rows[0].map((_, place) => (rows.slice(1).every((row) => isNumber(row[place]) || row[place] === '') ? 'r' : 'l')).join('');
    return [`\\begin{tabular}{${columns}}`, '\\toprule', line(rows[0]), '\\midrule', ...rows.slice(1).map(line), '\\bottomrule', '\\end{tabular}'].join('\n');
  },
};

const copy = async (what) => {
  try {
    await navigator.clipboard.writeText(what);
    return true;
  } catch {
    // From a file some browsers have no clipboard: the old way.
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
    const numeric = rows[0].map((_, place) => rows.length > 1 && rows.slice(1).every((row) => row[place] === '' || row[place] === '–' || isNumber(row[place])));
    for (const row of table.rows) [...row.cells].forEach((cell, place) => cell.classList.toggle('number', numeric[place]));
    const button = (format) => h('button', {
      type: 'button',
      onclick: async () => {
        const what = formats[format](cells(table));
        table.dataset.copied = what;
        say((await copy(what)) ? `copied as ${format}` : 'this browser does not let the page copy');
      },
    }, format);
    table.parentElement.after(h('div', { class: 'tools' }, h('span', { class: 'quiet' }, 'Copy as'), Object.keys(formats).map(button)));
  }
};

// A step plugin: markdown_table makes a Markdown table of rows or of CSV text, for
// reports, pull requests and chat.

sentinel.plugin({
  name: "markdown_table",
  version: "1.0.0",
  stateless: true,
  steps: {
    markdown_table: {
      summary: "Makes an aligned Markdown table of rows or CSV text.",
      readOnly: true,
      infer: ["csv"],
      fields: {
        type: "object",
        properties: {
          rows: { type: "array", items: { type: "object" }, description: "Objects, one a row; any value but text and numbers is shown as JSON." },
          csv: { type: "string", description: "Text whose first line names the columns; used if there are no rows." },
          delimiter: { type: "string", minLength: 1, maxLength: 1, default: ",", description: "What separates the columns of csv." },
          columns: {
            type: "array",
            minItems: 1,
            description: "Which columns, in this order; default all, as they first appear.",
            items: {
              oneOf: [
                { type: "string" },
                {
                  type: "object",
                  properties: {
                    field: { type: "string" },
                    title: { type: "string" },
                    align: { enum: ["left", "right", "center"] },
                    decimals: { type: "integer", minimum: 0, maximum: 15 },
                  },
                  required: ["field"],
                  additionalProperties: false,
                },
              ],
            },
          },
          sort: { type: "array", items: { type: "string" }, description: 'Fields to sort by, "-field" for the greatest first.' },
          limit: { type: "integer", minimum: 0, description: "At most so many rows; a line says how many are left out." },
          totals: {
            type: "object",
            additionalProperties: { enum: ["sum", "average", "min", "max", "count"] },
            description: "A last row: what to say of a column, over all rows.",
          },
          empty: { type: "string", default: "", description: "What stands for a value that is not there." },
        },
        additionalProperties: false,
      },
      run,
      validate,
    },
  },
});

/**
 * @typedef {{ field: string, title?: string, align?: "left" | "right" | "center", decimals?: number }} Column
 * @typedef {{ rows?: Record<string, unknown>[], csv?: string, delimiter?: string, columns?: (string | Column)[], sort?: string[],
 *   limit?: number, totals?: Record<string, "sum" | "average" | "min" | "max" | "count">, empty?: string }} Fields
 */

/** @param {Fields} fields */
function validate(fields) {
  if (fields.rows === undefined && fields.csv === undefined)
    throw SentinelError.badField("rows", "want rows or csv");
}

/** @param {Step<Fields>} step @param {Context} ctx */
function run(step, ctx) {
  const f = step.fields;
  validate(f);
  const all = f.rows ?? parseCSV(f.csv ?? "", f.delimiter ?? ",");
  const names = [...new Set(all.flatMap((row) => Object.keys(row)))];
  const columns = (f.columns ?? names).map((c) => typeof c === "string" ? { field: c } : c);
  if (!columns.length) return { markdown: "", rows: 0, columns: [] };
  for (const c of columns)
    if (all.length && !names.includes(c.field)) ctx.warn(`no row has the column ${JSON.stringify(c.field)}`);

  const sorted = sortRows(all, f.sort ?? []);
  const shown = f.limit === undefined ? sorted : sorted.slice(0, f.limit);
  const totals = f.totals && Object.fromEntries(Object.entries(f.totals).map(([field, what]) => [field, total(all, field, what)]));

  const cells = shown.map((row) => columns.map((c) => cell(row[c.field], c, f.empty ?? "")));
  if (totals) {
    const last = columns.map((c) => c.field in totals ? bold(cell(totals[c.field], c, f.empty ?? "")) : "");
    if (!last[0]) last[0] = "**Total**";
    cells.push(last);
  }
  const markdown = layOut(columns.map((c) => literal(c.title ?? c.field)), cells, columns.map((c) => c.align ?? natural(all, c.field)));
  const left = all.length - shown.length;
  return {
    markdown: left ? `${markdown}\n\n${left} more ${left === 1 ? "row" : "rows"}` : markdown,
    rows: all.length,
    columns: columns.map((c) => c.field),
    ...totals && { totals },
  };
}

/**
 * Reads CSV as RFC 4180 has it: a quoted value may hold delimiters, line breaks
 * and quotes, which are doubled. Missing values at a line's end are left out.
 * @param {string} text @param {string} delimiter
 */
function parseCSV(text, delimiter) {
  /** @type {string[][]} */
  const lines = [];
  /** @type {string[]} */
  let line = [];
  let value = "", quoted = false, any = false;
  const end = () => { line.push(value); value = ""; };
  const endLine = () => {
    end();
    if (any) lines.push(line);
    line = [], any = false;
  };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') value += c;
      else if (text[i + 1] === '"') value += text[i++];
      else quoted = false;
    } else if (c === '"' && value === "") {
      quoted = any = true;
    } else if (c === delimiter) {
      any = true;
      end();
    } else if (c === "\n" || c === "\r") {
      if (c === "\r" && text[i + 1] === "\n") i++;
      endLine();
    } else {
      any = true;
      value += c;
    }
  }
  if (quoted) throw SentinelError.badField("csv", `a quoted value does not end, in line ${lines.length + 1}`);
  if (any) endLine();
  const [header = [], ...body] = lines;
  const twice = header.find((name, i) => header.indexOf(name) !== i);
  if (twice !== undefined) throw SentinelError.badField("csv", `the column ${JSON.stringify(twice)} is there twice`);
  return body.map((values, i) => {
    if (values.length > header.length)
      throw SentinelError.badField("csv", `row ${i + 1} has ${values.length} values, there are ${header.length} columns`);
    return Object.fromEntries(values.map((v, n) => [header[n], v]));
  });
}

/** A number, or a text that is one; else undefined. @param {unknown} value */
function asNumber(value) {
  if (typeof value === "number") return value;
  if (typeof value === "string" && /^\s*-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(value)) return Number(value);
  return undefined;
}

/** @param {unknown} value */
const given = (value) => value !== undefined && value !== null && value !== "";

/** Sorts stably; what is not there comes last either way. @param {Record<string, unknown>[]} rows @param {string[]} keys */
function sortRows(rows, keys) {
  const order = keys.map((key) => key.startsWith("-") ? { field: key.slice(1), sign: -1 } : { field: key, sign: 1 });
  return [...rows].sort((a, b) => {
    for (const { field, sign } of order) {
      const x = a[field], y = b[field];
      if (!given(x) || !given(y)) {
        if (given(x) !== given(y)) return given(x) ? -1 : 1;
        continue;
      }
      const n = compare(x, y);
      if (n) return sign * n;
    }
    return 0;
  });
}

/** @param {unknown} x @param {unknown} y */
function compare(x, y) {
  const m = asNumber(x), n = asNumber(y);
  if (m !== undefined && n !== undefined) return m - n;
  const a = shown(x), b = shown(y);
  return a < b ? -1 : a > b ? 1 : 0;
}

/** @param {Record<string, unknown>[]} rows @param {string} field @param {string} what */
function total(rows, field, what) {
  const values = rows.map((row) => row[field]).filter(given);
  if (what === "count") return values.length;
  const numbers = values.map((v) => {
    const n = asNumber(v);
    if (n === undefined) throw SentinelError.badField("totals", `${what} of ${field}: ${shown(v)} is not a number`);
    return n;
  });
  if (!numbers.length) return what === "sum" ? 0 : null;
  // Rounded to the digits that a sum of decimal fractions can be trusted for.
  const sum = () => Number(numbers.reduce((a, b) => a + b, 0).toPrecision(15));
  switch (what) {
    case "average": return Number((sum() / numbers.length).toPrecision(15));
    case "min": return numbers.reduce((a, b) => Math.min(a, b));
    case "max": return numbers.reduce((a, b) => Math.max(a, b));
    default: return sum();
  }
}

/** @param {unknown} value */
const shown = (value) => typeof value === "string" ? value : typeof value === "object" ? JSON.stringify(value) : String(value);

/** @param {unknown} value @param {Column} column @param {string} empty */
function cell(value, column, empty) {
  if (!given(value)) return literal(empty);
  const n = asNumber(value);
  return literal(column.decimals !== undefined && n !== undefined ? n.toFixed(column.decimals) : shown(value));
}

/** What would end a cell or a row is written so that it does not. @param {string} text */
const literal = (text) => text.trim().replace(/[\\|]/g, "\\$&").replace(/\r\n?|\n/g, "<br>").replace(/[\0-\x1f]/g, " ");

/** @param {string} text */
const bold = (text) => text && `**${text}**`;

/** Numbers stand to the right. @param {Record<string, unknown>[]} rows @param {string} field */
function natural(rows, field) {
  const values = rows.map((row) => row[field]).filter(given);
  return values.length && values.every((v) => asNumber(v) !== undefined) ? "right" : "left";
}

/** How many columns of a terminal a text takes: marks none, ideographs and most emoji two. @param {string} text */
function width(text) {
  let n = 0;
  for (const c of text)
    if (!/^[\p{M}\u200d\ufe0f]$/u.test(c)) n += /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uff01-\uff60]$/u.test(c) ? 2 : 1;
  return n;
}

/** @param {string[]} titles @param {string[][]} cells @param {string[]} aligns */
function layOut(titles, cells, aligns) {
  const widths = titles.map((title, i) => Math.max(3, width(title), ...cells.map((row) => width(row[i]))));
  /** @param {string} text @param {number} i */
  const pad = (text, i) => {
    const room = widths[i] - width(text);
    const before = aligns[i] === "right" ? room : aligns[i] === "center" ? room >> 1 : 0;
    return " ".repeat(before) + text + " ".repeat(room - before);
  };
  /** @param {string[]} row */
  const line = (row) => "| " + row.map(pad).join(" | ") + " |";
  const rule = widths.map((w, i) => (aligns[i] === "center" ? ":" : "-") + "-".repeat(w - 2) + (aligns[i] === "left" ? "-" : ":"));
  return [line(titles), "| " + rule.join(" | ") + " |", ...cells.map(line)].join("\n");
}

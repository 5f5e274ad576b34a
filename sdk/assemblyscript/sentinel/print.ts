import { Kind, Value } from "./value";

/** The JSON text of a value; an absent one prints as null. */
export function print(v: Value): string {
  const parts: string[] = [];
  append(parts, v);
  return parts.join("");
}

/** A text as a JSON string, with its quotes. */
export function quote(s: string): string {
  const parts: string[] = [];
  appendText(parts, s);
  return parts.join("");
}

function append(parts: string[], v: Value): void {
  switch (v.kind) {
    case Kind.Bool:
    case Kind.Number:
      parts.push(v.text);
      return;
    case Kind.Text:
      appendText(parts, v.text);
      return;
    case Kind.List:
      parts.push("[");
      for (let i = 0; i < v.items.length; i++) {
        if (i) parts.push(",");
        append(parts, v.items[i]);
      }
      parts.push("]");
      return;
    case Kind.Object:
      parts.push("{");
      for (let i = 0; i < v.items.length; i++) {
        if (i) parts.push(",");
        appendText(parts, v.keys[i]);
        parts.push(":");
        append(parts, v.items[i]);
      }
      parts.push("}");
      return;
    default:
      parts.push("null");
  }
}

const digits = "0123456789abcdef";

function escape(c: i32): string {
  switch (c) {
    case 0x22: return '\\"';
    case 0x5c: return "\\\\";
    case 0x0a: return "\\n";
    case 0x0d: return "\\r";
    case 0x09: return "\\t";
  }
  return "\\u" + digits.charAt(c >> 12) + digits.charAt(c >> 8 & 15) + digits.charAt(c >> 4 & 15) + digits.charAt(c & 15);
}

function appendText(parts: string[], s: string): void {
  parts.push('"');
  let start = 0;
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    if (c >= 0x20 && c != 0x22 && c != 0x5c && (c & 0xf800) != 0xd800) continue;
    // A pair of surrogates is one character; one alone has no UTF-8 and is escaped.
    if ((c & 0xfc00) == 0xd800 && i + 1 < s.length && (s.charCodeAt(i + 1) & 0xfc00) == 0xdc00) {
      i++;
      continue;
    }
    if (i > start) parts.push(s.substring(start, i));
    parts.push(escape(c));
    start = i + 1;
  }
  parts.push(start ? s.substring(start) : s);
  parts.push('"');
}

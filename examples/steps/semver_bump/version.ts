// Versions as semver.org 2.0.0 has them.

// maxDigits keeps a number within what JSON carries exactly.
const maxDigits = 15;

/** Major, minor and patch, then what is before a release. The build is not kept: the next version has its own. */
export class Version {
  /** "v" if it was written with one. */
  prefix: string = "";
  major: i64 = 0;
  minor: i64 = 0;
  patch: i64 = 0;
  /** "rc", "1" of -rc.1; none for a release. */
  pre: string[] = [];
  build: string = "";
  /** What is wrong with the text it was read from; empty if nothing is. */
  problem: string = "";

  toString(): string {
    let s = this.prefix + this.major.toString() + "." + this.minor.toString() + "." + this.patch.toString();
    if (this.pre.length) s += "-" + this.pre.join(".");
    return this.build.length ? s + "+" + this.build : s;
  }
}

export function isNumber(s: string): bool {
  if (!s.length) return false;
  for (let i = 0; i < s.length; i++) if (s.charCodeAt(i) < 0x30 || s.charCodeAt(i) > 0x39) return false;
  return true;
}

/** What is wrong with the identifiers of a prerelease or a build; empty if nothing is. */
export function badIdentifiers(list: string[], build: bool): string {
  for (let n = 0; n < list.length; n++) {
    const s = list[n];
    if (!s.length) return "an identifier is empty";
    for (let i = 0; i < s.length; i++) {
      const c = s.charCodeAt(i);
      const letter = (c | 32) >= 0x61 && (c | 32) <= 0x7a;
      if (!letter && c != 0x2d && !(c >= 0x30 && c <= 0x39)) return "in " + s + " is more than letters, digits and -";
    }
    if (!build && s.length > 1 && s.charCodeAt(0) == 0x30 && isNumber(s)) return s + " begins with 0";
  }
  return "";
}

function core(v: Version, s: string): i64 {
  if (!isNumber(s)) v.problem = "want three numbers, MAJOR.MINOR.PATCH";
  else if (s.length > 1 && s.charCodeAt(0) == 0x30) v.problem = s + " begins with 0";
  else if (s.length > maxDigits) v.problem = s + " is too big";
  else return I64.parseInt(s);
  return 0;
}

/** Reads a version; its problem says if it is none. */
export function parseVersion(text: string): Version {
  const v = new Version();
  let s = text.trim();
  if (s.startsWith("v")) {
    v.prefix = "v";
    s = s.substring(1);
  }
  const plus = s.indexOf("+");
  if (plus >= 0) {
    v.build = s.substring(plus + 1);
    s = s.substring(0, plus);
    v.problem = badIdentifiers(v.build.split("."), true);
    if (v.problem.length) return v;
  }
  const dash = s.indexOf("-");
  if (dash >= 0) {
    v.pre = s.substring(dash + 1).split(".");
    s = s.substring(0, dash);
    v.problem = badIdentifiers(v.pre, false);
    if (v.problem.length) return v;
  }
  const numbers = s.split(".");
  if (numbers.length != 3) {
    v.problem = "want three numbers, MAJOR.MINOR.PATCH";
    return v;
  }
  v.major = core(v, numbers[0]);
  v.minor = core(v, numbers[1]);
  v.patch = core(v, numbers[2]);
  return v;
}

/** Less than 0 if the prerelease a comes before b; none, a release, comes after all. */
export function comparePre(a: string[], b: string[]): i32 {
  if (!a.length || !b.length) return (a.length ? 0 : 1) - (b.length ? 0 : 1);
  for (let i = 0; i < a.length && i < b.length; i++) {
    const x = a[i], y = b[i];
    if (x == y) continue;
    const m = isNumber(x), n = isNumber(y);
    if (m != n) return m ? -1 : 1; // numbers come first
    if (m && x.length != y.length) return x.length - y.length;
    return x < y ? -1 : 1;
  }
  return a.length - b.length;
}

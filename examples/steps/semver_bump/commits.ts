// What commit messages in the form of conventionalcommits.org 1.0.0 ask for.

/** How far a version moves. */
export enum Level { None, Patch, Minor, Major }

export function levelName(l: Level): string {
  switch (l) {
    case Level.Major: return "major";
    case Level.Minor: return "minor";
    case Level.Patch: return "patch";
  }
  return "none";
}

/** What one message asks for, and why. */
export class Verdict {
  constructor(public level: Level, public type: string, public subject: string, public why: string) {}
}

/** Judges one message: "type(scope)!: subject", then a body, then footers. */
export function judge(message: string): Verdict {
  const lines = message.trim().split("\n");
  const subject = lines[0].trim();
  const colon = subject.indexOf(": ");
  let head = colon < 0 ? "" : subject.substring(0, colon);
  const loud = head.endsWith("!");
  if (loud) head = head.substring(0, head.length - 1);
  const scope = head.indexOf("(");
  if (scope > 0 && head.endsWith(")")) head = head.substring(0, scope);
  const type = isWord(head) ? head.toLowerCase() : "";
  if (type.length && loud) return new Verdict(Level.Major, type, subject, "it is marked with ! as breaking");
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i].trimStart();
    if (line.startsWith("BREAKING CHANGE: ") || line.startsWith("BREAKING-CHANGE: ")) {
      return new Verdict(Level.Major, type, subject, "its footer says what breaks");
    }
  }
  if (type == "feat") return new Verdict(Level.Minor, type, subject, "it adds a feature");
  if (type == "fix" || type == "perf" || type == "revert") return new Verdict(Level.Patch, type, subject, "it is a " + type);
  if (!type.length) return new Verdict(Level.None, "", subject, "it is not in the form TYPE: SUBJECT");
  return new Verdict(Level.None, type, subject, "a " + type + " changes nothing for users");
}

function isWord(s: string): bool {
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i) | 32;
    if (c < 0x61 || c > 0x7a) return false;
  }
  return s.length > 0;
}

/** Takes the output of git log apart, as it is or with --format='commit %H%n%B', into messages. */
export function splitLog(log: string): string[] {
  const messages: string[] = [];
  const lines = log.split("\n");
  let message = "", inside = false, header = false;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    if (isCommit(line)) {
      if (inside) messages.push(message);
      message = "";
      inside = header = true;
    } else if (header && isHeader(line)) {
      continue;
    } else if (inside) {
      header = false;
      message += line + "\n";
    }
  }
  if (inside) messages.push(message);
  return messages;
}

// isCommit reports whether a line begins a commit: the word, then its hash, then
// at most the names that git log --decorate adds.
function isCommit(line: string): bool {
  if (!line.startsWith("commit ")) return false;
  const end = line.indexOf(" ", 7);
  const hash = line.substring(7, end < 0 ? line.length : end);
  if (hash.length != 40 && hash.length != 64) return false;
  for (let i = 0; i < hash.length; i++) {
    const c = hash.charCodeAt(i);
    if (!(c >= 0x30 && c <= 0x39) && !(c >= 0x61 && c <= 0x66)) return false;
  }
  return end < 0 || line.charAt(end + 1) == "(";
}

function isHeader(line: string): bool {
  return line.startsWith("Author") || line.startsWith("Date:") || line.startsWith("Commit") || line.startsWith("Merge:");
}

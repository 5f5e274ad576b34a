// A step plugin: semver_bump says which version comes next, and why.
import { Context, Fault, Kind, Outcome, Problem, Step, Value, badField, bool_, int, list, object, ok, plugin, text } from "./sdk";
import { Level, Verdict, judge, levelName, splitLog } from "./commits";
import { Version, badIdentifiers, comparePre, isNumber, parseVersion } from "./version";

const fields = `{
  "type": "object",
  "properties": {
    "version": {"type": "string", "description": "The version now: 1.4.2, v2.0.0-rc.1."},
    "commits": {"type": ["array", "string"], "items": {"type": "string"}, "description": "Messages since then, in the form of Conventional Commits, or the output of git log."},
    "level": {"enum": ["major", "minor", "patch", "none"], "description": "How far to move, whatever the commits say."},
    "preid": {"type": "string", "description": "Make a prerelease with this name: rc gives 1.5.0-rc.1, then 1.5.0-rc.2."},
    "build": {"type": "string", "description": "Build metadata of the next version: what stands behind its +."}
  },
  "required": ["version"],
  "additionalProperties": false
}`;

plugin("semver_bump", "1.0.0")
  .step(new Step("semver_bump", "Says which version comes next after these commits, and why.", fields, run).reads().validate(check))
  .stateless();

// A text may still hold a reference where a definition is checked.
function isReference(s: string): bool { return s.includes("$"); }

function check(f: Value): Problem[] {
  const problems: Problem[] = [];
  const version = f.get("version").asText();
  if (!isReference(version)) {
    const v = parseVersion(version);
    if (v.problem.length) problems.push(new Problem("version", version + ": " + v.problem, "write it as semver.org has it: 1.4.2"));
  }
  const preid = f.get("preid").asText(), build = f.get("build").asText();
  if (preid.length && !isReference(preid)) {
    const wrong = badIdentifiers(preid.split("."), false);
    if (wrong.length) problems.push(new Problem("preid", wrong));
    else if (isNumber(preid)) problems.push(new Problem("preid", preid + " is a number, want a name such as rc"));
  }
  if (build.length && !isReference(build)) {
    const wrong = badIdentifiers(build.split("."), true);
    if (wrong.length) problems.push(new Problem("build", wrong));
  }
  if (!f.get("commits").given && !f.get("level").given) problems.push(new Problem("commits", "want commits or level"));
  return problems;
}

function run(c: Context): Outcome<Value> {
  const problems = check(c.fields);
  if (problems.length) {
    const p = problems[0];
    return Outcome.fail<Value>(badField(p.field, p.message).withHint(p.hint));
  }
  const now = parseVersion(c.field("version").asText());
  if (now.problem.length) return Outcome.fail<Value>(badField("version", now.problem)); // a text with a $ is none

  const reasons = list();
  let level = Level.None;
  const commits = c.field("commits");
  const messages = commits.kind == Kind.Text ? splitLog(commits.text) : commits.asTexts();
  for (let i = 0; i < messages.length; i++) {
    const v = judge(messages[i]);
    if (v.level > level) level = v.level;
    reasons.push(reason(v));
  }
  const asked = c.field("level").asText();
  if (asked.length) {
    level = asked == "major" ? Level.Major : asked == "minor" ? Level.Minor : asked == "patch" ? Level.Patch : Level.None;
    reasons.push(object().set("level", text(asked)).set("why", text("the step's field level says so")));
  } else if (level == Level.Major && now.major == 0) {
    // Before 1.0.0 anything may change, and 1.0.0 is never reached by accident.
    level = Level.Minor;
    reasons.push(object().set("level", text("minor")).set("why", text("before 1.0.0 a breaking change is a minor one; write level: major for 1.0.0")));
  }

  const next = move(now, level);
  const preid = c.field("preid").asText();
  if (preid.length && (level != Level.None || now.pre.length)) {
    const fault = prerelease(now, next, preid);
    if (fault !== null) return Outcome.fail<Value>(fault);
  }
  const changed = level != Level.None || next.toString() != bare(now);
  next.build = c.field("build").asText();
  if (!changed && !next.build.length) next.build = now.build;
  c.info(now.toString() + " -> " + next.toString());
  return ok(object().set("version", text(next.toString())).set("previous", text(now.toString())).set("level", text(levelName(level)))
    .set("changed", bool_(changed)).set("prerelease", bool_(next.pre.length > 0))
    .set("major", int(next.major)).set("minor", int(next.minor)).set("patch", int(next.patch)).set("reasons", reasons));
}

function reason(v: Verdict): Value {
  const out = object().set("level", text(levelName(v.level)));
  if (v.type.length) out.set("type", text(v.type));
  return out.set("commit", text(v.subject)).set("why", text(v.why));
}

// bare is a version without its build, as two are compared.
function bare(v: Version): string {
  const build = v.build;
  v.build = "";
  const s = v.toString();
  v.build = build;
  return s;
}

// move returns the release that a level leads to. A prerelease that is on its way
// to one at least so far ends in that one: 2.0.0-rc.1 is followed by 2.0.0.
function move(v: Version, level: Level): Version {
  const next = new Version();
  next.prefix = v.prefix;
  next.major = v.major;
  next.minor = v.minor;
  next.patch = v.patch;
  if (level == Level.None) {
    next.pre = v.pre;
    return next;
  }
  const towards = !v.pre.length ? Level.None : v.patch ? Level.Patch : v.minor ? Level.Minor : Level.Major;
  if (towards >= level) return next;
  if (level == Level.Major) {
    next.major++;
    next.minor = next.patch = 0;
  } else if (level == Level.Minor) {
    next.minor++;
    next.patch = 0;
  } else {
    next.patch++;
  }
  return next;
}

// prerelease puts the name and the next number behind a release. It goes on from
// the prerelease of the same release and the same name, and never back.
function prerelease(now: Version, next: Version, preid: string): Fault | null {
  const pre = preid.split(".");
  const same = now.pre.length > 0 && now.major == next.major && now.minor == next.minor && now.patch == next.patch;
  let n: i64 = 1;
  if (same && now.pre.length == pre.length + 1 && now.pre.slice(0, pre.length).join(".") == preid && isNumber(now.pre[pre.length])) {
    if (now.pre[pre.length].length > 15) return badField("version", "its prerelease's number is too big");
    n = I64.parseInt(now.pre[pre.length]) + 1;
  }
  pre.push(n.toString());
  if (same && comparePre(pre, now.pre) <= 0) {
    return badField("preid", pre.join(".") + " does not come after " + now.pre.join("."))
      .withHint("take a later name: alpha, beta, rc; or leave preid out for the release");
  }
  next.pre = pre;
  return null;
}

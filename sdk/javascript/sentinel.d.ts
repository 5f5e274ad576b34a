// Types of the globals of a plugin's script, for editors and for tsc --noEmit.
// Clauses are those of sdk/ABI.md, which specifies every type in full.

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

/** The kind of an error (A5). A step that throws an error other than a SentinelError ends with `plugin` or, for a TypeError and similar errors, `trap`. */
type Code =
  | "bad_fields" | "denied" | "not_found" | "conflict" | "timeout" | "cancelled" | "unavailable" | "limit"
  | "trap" | "memory" | "output" | "plugin" | "interrupted" | "internal";

interface ErrorDetails {
  /** The invalid field: "params.path". */
  field?: string;
  /** The delay before the next attempt. */
  retryAfterMs?: number;
  /** A retry cannot help. */
  permanent?: boolean;
  /** What to do next, for users. */
  hint?: string;
}

/** An error of the host or of a step. Every failed host call throws one; a SentinelError that a step throws is reported as it is. */
declare class SentinelError extends Error implements ErrorDetails {
  constructor(code: Code, message: string, more?: ErrorDetails);
  /** The error for an invalid field of the step. */
  static badField(field: string, message: string, hint?: string): SentinelError;
  code: Code;
  field?: string;
  retryAfterMs?: number;
  permanent?: boolean;
  hint?: string;
}

/** One permission with its reason, which the operator reads (A2.4). Write `use: "..."` literally: the build searches for it. */
type Permission =
  | { use: "command" | "http" | "folder" | "secret"; names: string[]; reason: string }
  | { use: "llm" | "spawn" | "emit"; names?: string[]; reason: string }
  | { use: "watch"; reason: string };

interface Step<Fields = any> {
  type: string;
  id?: string;
  name?: string;
  /** Position in the definition: "3.then.0". */
  address: string;
  /** Position in the run: "1#7.steps.0". */
  path: string;
  /** The step's own fields, with references replaced and the types of the schema. */
  fields: Fields;
}

/** A command has a name, PLUGIN/VERB; the other roles have none. */
type Role = "command" | "error_classifier" | "output_classifier" | "notifier" | "model";

interface Problem { field: string; message: string; hint?: string }

interface StepType<Fields = any> {
  /** One sentence, for users. */
  summary: string;
  /** JSON Schema of type object of the step's own fields. Properties may have "x-sentinel" marks (A2.3). */
  fields: { type: "object"; [keyword: string]: unknown };
  /** JSON Schema of the output, for users and for checks of references to it. A command needs it. */
  output?: { [keyword: string]: unknown };
  /** A step without a type that has one of these fields is of this type. */
  infer?: string[];
  /** Accepted field name -> name in fields. */
  aliases?: { [alias: string]: string };
  /** It changes nothing outside the run. */
  readOnly?: boolean;
  /** What the step type is besides, clause A9: needs the permission {use: "provide", names: [role], reason}. */
  provides?: { as: Role; name?: string };
  /**
   * Executes one step; the result becomes the value of outputTo. The host may end it
   * at any call and execute it again later with the same answers, so its calls must
   * depend only on its fields and the answers. It may be async, but host calls
   * block: there is nothing to await.
   */
  run(step: Step<Fields>, ctx: Context): unknown;
  /** Returns problems of the fields beyond the schema. A text may have references. */
  validate?(fields: Fields): Problem[] | void;
}

interface Plugin {
  /** ^[a-z][a-z0-9_]{0,63}$ */
  name: string;
  version: string;
  steps: { [type: string]: StepType };
  permissions?: Permission[];
  /** Requests and outputs depend only on the input, so that an operator may allow instances to be reused. */
  stateless?: boolean;
}

interface Message { role: "user" | "tool"; content: string; toolCallId?: string; name?: string; isError?: boolean }

interface Turn {
  /** From the reply before; the first turn names none. */
  conversation?: string;
  /** The new messages. */
  append?: Message[];
  /** Only in the first turn. */
  system?: string;
  /** Only in the first turn: the host adds $ragContext and the variables. */
  context?: boolean;
  model?: string;
  temperature?: number;
  maxTokens?: number;
  /** Commands and patterns that are offered to the model. */
  tools?: string[];
  /** JSON Schema of the reply. */
  schema?: JsonObject;
  /** Other messages in the place of those from "from" (0 is the first) up to "to", in their order: keeps the conversation within the window of its model. */
  replace?: { from: number; to: number; with: Message[] }[];
  /** Answers without a change of the conversation. */
  aside?: boolean;
}

interface Reply {
  conversation: string;
  text: string;
  json?: any;
  problems?: string[];
  toolCalls: { id: string; name: string; arguments: JsonObject }[];
  finish: "stop" | "tools" | "length";
  /** Tokens that a turn may have beside its reply, if the host knows that. */
  inputLimit?: number;
  usage: { inputTokens: number; outputTokens: number; costUsd: number; calls?: number };
  provider: string;
  model: string;
}

interface Rule { pattern: string; classification: string; action?: string }

interface Watched {
  executionId: string;
  lines: { text: string; classification: string; lineNumber: number; stream: string; timestamp: string }[];
  text: string;
  finished: boolean;
  exitCode?: number;
  dropped: number;
  cursor: number;
}

interface Block {
  /** "then", "steps" or "branches.0". */
  field: string;
  /** Set in the scope before the block starts. */
  vars?: JsonObject;
}

type BlockResult = { success: true; output: any } | { success: false; output: any; error: SentinelError; /** It did not begin, because another block failed. */ skipped?: true };

interface BlockOptions {
  /** The first failure cancels the other blocks. */
  failFast?: boolean;
  /** How many run at once; all if it is not given. */
  concurrency?: number;
  /** After a failure no further block begins; those that run go on to their end. */
  drain?: boolean;
  /** What a block sets is not kept behind it, also of a single block. */
  isolated?: boolean;
  /** How many blocks the calls of the step have together, for people. */
  total?: number;
}

type Wait = (
  | { durationMs: number } | { until: string } | { event: string } | { run: string }
  | { decision: { prompt: string; approvers?: string[]; callKind?: string } }
) & { timeoutMs?: number };

interface Decision { approved: boolean; verdict: "approve" | "reject"; by: string; at: string; comment?: string }

interface Waited { timedOut: boolean; event?: any; result?: RunResult; decision?: Omit<Decision, "approved"> }

interface RunResult {
  run: string;
  success: boolean;
  status: string;
  iterations: number;
  output?: any;
  variables: JsonObject;
  error?: { code: Code; message: string } & ErrorDetails;
}

interface HttpRequest {
  /** GET if absent. */
  method?: string;
  /** The host replaces {{secret.NAME}} in its path and query and in headers; in the body only with bodySecrets. */
  url: string;
  headers?: { [name: string]: string };
  body?: string;
  /**
   * Replaces secrets in the body too, escaped as JSON or a form if that is the header content-type. The body must then not contain data from
   * other sources: a {{secret.NAME}} in it would be replaced by the secret.
   */
  bodySecrets?: boolean;
  timeoutMs?: number;
}

interface HttpResponse {
  status: number;
  /** Names in lower case. */
  headers: { [name: string]: string };
  body: string;
  /** Given if the body is not text. */
  encoding?: "base64";
  truncated: boolean;
}

interface FileRequest {
  /** The name in the plugin's permissions. */
  folder: string;
  op: "read" | "write" | "list" | "stat" | "remove";
  /** Relative to the folder, with /. */
  path?: string;
  text?: string;
  encoding?: "base64";
  offset?: number;
  length?: number;
}

interface FileRead { text: string; encoding?: "base64"; size: number; truncated: boolean }
interface FileEntry { name: string; dir: boolean; size: number; modified: string }
interface FileStat { exists: boolean; dir?: boolean; size?: number; modified?: string }

/** One attempt of one step, with access to the host. Every method blocks until the answer arrives, and throws a SentinelError if the call fails. */
interface Context {
  step: Step;
  run: { id: string; sentinel: string; iteration: number; workspace: string; /** Equal for all attempts. */ key: string };
  /** From 1. */
  attempt: number;
  /** Of the attempt before; absent for the first attempt. */
  retry?: { attempts: number; error: SentinelError; category: string };
  /** The value of this attempt's last checkpoint. */
  state?: any;

  /** Calls a command (A6.3, permission command). A command that ran and found a failure returns a result. */
  command(name: string, params?: JsonObject): any;
  /** Calls a command that a model has requested: the host checks it against tools. */
  toolCommand(name: string, args: JsonObject, tools?: string[]): any;
  /** One turn of a model (A6.4, permission llm). */
  llm(turn: Turn): Reply;
  /** Waits for lines of a shell execution (A6.5, permission watch). */
  watch(executionId: string, options?: { rules?: Rule[]; until?: "finished" | "error" | "match" }): Watched;
  /** Evaluates a condition over the variables (A6.6). */
  eval(expression: string, vars?: JsonObject): { value: any; truthy: boolean };
  /** Reads a variable: "build.lines[0]" (A6.7). */
  getVar(path: string): { value: any; found: boolean };
  setVar(name: string, value: unknown): void;
  setVars(values: { [name: string]: unknown }): void;
  /** Runs nested steps and returns the output of the last one, or throws the error that ended them (A6.8). */
  block(field: string, vars?: JsonObject): any;
  /** Runs several blocks as parallel branches; the results are in their order. */
  blocks(blocks: Block[], options?: BlockOptions): BlockResult[];
  /** Starts the run of a definition in a field, once (A6.9, permission spawn). */
  spawn(field: string, inputs?: JsonObject): { run: string; sentinel: string };
  /** Starts a child run of the sentinel with that id. */
  spawnNamed(sentinel: string, inputs?: JsonObject): { run: string; sentinel: string };
  /** (A6.10, permission emit) */
  emit(event: string, data?: unknown): { id: string };
  /** Waits as in clause A6.11; a timeout is an answer here, and an error with code timeout in the methods below. */
  wait(request: Wait): Waited;
  sleep(ms: number): void;
  waitUntil(moment: string | Date): void;
  waitEvent(pattern: string, timeoutMs?: number): any;
  waitRun(run: string, timeoutMs?: number): RunResult;
  /** Waits for a decision. callKind is the kind of calls that an approval covers. */
  decide(prompt: string, options?: { approvers?: string[]; timeoutMs?: number; callKind?: string }): Decision;
  /** Limits what a replay repeats: the next replay starts with ctx.state (A6.12). */
  checkpoint(state: unknown): void;
  /** (A6.13, permission http) A status of 400 or more is a response, not an error. */
  http(request: string | HttpRequest): HttpResponse;
  /** (A6.16, permission folder) */
  file(request: FileRequest): any;
  readFile(folder: string, path: string, options?: { offset?: number; length?: number }): FileRead;
  writeFile(folder: string, path: string, text: string, encoding?: "base64"): { size: number };
  listFiles(folder: string, path?: string, offset?: number): { entries: FileEntry[]; truncated: boolean };
  stat(folder: string, path?: string): FileStat;
  removeFile(folder: string, path: string): void;
  /** Writes to the run log (A6.14); console does the same. Logging never fails a step. */
  log(level: "debug" | "info" | "warn" | "error", message: string): void;
  debug(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  /** The host's time, recorded (A6.15). */
  now(): { unixMs: number; iso: string };
  /** The number of steps in a field with the mark steps. */
  steps(field: string): number;
  /** The number of steps of each branch in a field with the mark branches. */
  branches(field: string): number[];
}

declare const sentinel: {
  /** Registers p as the plugin of this module. Call it once, at the top of the script. */
  plugin(p: Plugin): void;
  Error: typeof SentinelError;
};

// Types of what a plugin's script finds, for editors and for tsc --noEmit.
// Clauses are those of sdk/ABI.md, where every shape is described in full.

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

/** What went wrong, in one word (A5). A step that throws any other error than a SentinelError ends with `plugin` or, for a TypeError and its kin, `trap`. */
type Code =
  | "bad_fields" | "denied" | "not_found" | "conflict" | "timeout" | "cancelled" | "unavailable" | "limit"
  | "trap" | "memory" | "output" | "plugin" | "interrupted" | "internal";

interface ErrorDetails {
  /** The field that is wrong: "params.path". */
  field?: string;
  /** How long to wait before the next attempt. */
  retryAfterMs?: number;
  /** Another attempt cannot help. */
  permanent?: boolean;
  /** What the reader can do about it. */
  hint?: string;
}

/** An error of the host or of a step. Every failed host call throws one; a step that throws one decides what its caller sees. */
declare class SentinelError extends Error implements ErrorDetails {
  constructor(code: Code, message: string, more?: ErrorDetails);
  /** The error that a step's own field is not as it should be. */
  static badField(field: string, message: string, hint?: string): SentinelError;
  code: Code;
  field?: string;
  retryAfterMs?: number;
  permanent?: boolean;
  hint?: string;
}

/** One permission with its reason, which the operator reads (A2.4). Write `use: "..."` in so many words: the build looks for it. */
type Ask =
  | { use: "command" | "http" | "folder" | "secret"; names: string[]; reason: string }
  | { use: "llm" | "spawn" | "emit"; names?: string[]; reason: string }
  | { use: "watch"; reason: string };

interface Step<Fields = any> {
  type: string;
  id?: string;
  name?: string;
  /** Place in the definition: "3.then.0". */
  address: string;
  /** Place in the run: "1#7.steps.0". */
  path: string;
  /** The step's own fields, references replaced, of the types that the schema says. */
  fields: Fields;
}

interface Problem { field: string; message: string; hint?: string }

interface StepType<Fields = any> {
  /** One sentence, for people. */
  summary: string;
  /** JSON Schema of type object of the step's own fields. Properties may have "x-sentinel" marks (A2.3). */
  fields: { type: "object"; [keyword: string]: unknown };
  /** A step without a type that has one of these fields is of this type. */
  infer?: string[];
  /** Accepted field name -> name in fields. */
  aliases?: { [alias: string]: string };
  /** It changes nothing outside the run. */
  readOnly?: boolean;
  /**
   * Carries out one step; what it returns becomes the value of outputTo. The host
   * may end it at any call and run it again later with the same answers, so what it
   * asks for must depend on nothing but its fields and the answers. It may be async,
   * but calls of the host block: there is nothing to await.
   */
  run(step: Step<Fields>, ctx: Context): unknown;
  /** Says what is wrong with fields beyond the schema. A text may still hold references. */
  validate?(fields: Fields): Problem[] | void;
}

interface Plugin {
  /** ^[a-z][a-z0-9_]{0,63}$ */
  name: string;
  version: string;
  steps: { [type: string]: StepType };
  asks?: Ask[];
  /** Requests and outputs depend on the input alone, so that an operator may allow instances to be reused. */
  stateless?: boolean;
}

interface Message { role: "user" | "tool"; content: string; toolCallId?: string; name?: string; isError?: boolean }

interface Turn {
  /** From the reply before; the first turn names none. */
  conversation?: string;
  /** What is new. */
  append?: Message[];
  /** Only at the start. */
  system?: string;
  /** Only at the start: the host adds $ragContext and the variables. */
  context?: boolean;
  model?: string;
  temperature?: number;
  maxTokens?: number;
  /** Commands and patterns that are offered to the model. */
  tools?: string[];
  /** JSON Schema that the reply is to fit. */
  schema?: JsonObject;
}

interface Reply {
  conversation: string;
  text: string;
  json?: any;
  problems?: string[];
  toolCalls: { id: string; name: string; arguments: JsonObject }[];
  finish: "stop" | "tools" | "length";
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

type BlockResult = { success: true; output: any } | { success: false; output: any; error: SentinelError };

type Wait = (
  | { durationMs: number } | { until: string } | { event: string } | { run: string }
  | { decision: { prompt: string; approvers?: string[] } }
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
  /** {{secret.NAME}} in its path and query and in headers is replaced by the host; in the body it stays, but for bodySecrets. */
  url: string;
  headers?: { [name: string]: string };
  body?: string;
  /**
   * Has secrets in the body replaced too, as JSON or a form if the header content-type says so. The body must then hold no text of others:
   * one with {{secret.NAME}} in it would be sent the secret.
   */
  bodySecrets?: boolean;
  timeoutMs?: number;
}

interface HttpResponse {
  status: number;
  /** Names in lower case. */
  headers: { [name: string]: string };
  body: string;
  /** There when the body is no text. */
  encoding?: "base64";
  truncated: boolean;
}

interface FileRequest {
  /** The plugin's own word for it, as in its asks. */
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

/** One attempt of one step, and the host that answers it. Every method blocks until the answer is there and throws a SentinelError if there is none. */
interface Context {
  step: Step;
  run: { id: string; sentinel: string; iteration: number; workspace: string; /** Equal for all attempts. */ key: string };
  /** From 1. */
  attempt: number;
  /** Of the attempt before; absent at the first. */
  retry?: { attempts: number; error: SentinelError; category: string };
  /** The value of this attempt's last checkpoint. */
  state?: any;

  /** Calls a command (A6.3, asks command). A command that ran and found something bad is a result. */
  command(name: string, params?: JsonObject): any;
  /** Calls a command as the wish of a model: the host holds it to tools. */
  toolCommand(name: string, args: JsonObject, tools?: string[]): any;
  /** One turn of a model (A6.4, asks llm). */
  llm(turn: Turn): Reply;
  /** Blocks until lines of a shell execution are there (A6.5, asks watch). */
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
  blocks(blocks: Block[], options?: { failFast?: boolean; concurrency?: number }): BlockResult[];
  /** Starts the run of a definition in a field, once (A6.9, asks spawn). */
  spawn(field: string, inputs?: JsonObject): { run: string; sentinel: string };
  /** Starts a run of the sentinel with that id. */
  spawnNamed(sentinel: string, inputs?: JsonObject): { run: string; sentinel: string };
  /** (A6.10, asks emit) */
  emit(event: string, data?: unknown): { id: string };
  /** Waits as clause A6.11 has it; reaching timeoutMs is an answer here, and an error with code timeout in the methods below. */
  wait(request: Wait): Waited;
  sleep(ms: number): void;
  waitUntil(moment: string | Date): void;
  waitEvent(pattern: string, timeoutMs?: number): any;
  waitRun(run: string, timeoutMs?: number): RunResult;
  /** Asks a person. */
  decide(prompt: string, options?: { approvers?: string[]; timeoutMs?: number }): Decision;
  /** Ends what a replay repeats: the next one starts with ctx.state (A6.12). */
  checkpoint(state: unknown): void;
  /** (A6.13, asks http) A status of 400 or more is a response, not an error. */
  http(request: string | HttpRequest): HttpResponse;
  /** (A6.16, asks folder) */
  file(request: FileRequest): any;
  readFile(folder: string, path: string, options?: { offset?: number; length?: number }): FileRead;
  writeFile(folder: string, path: string, text: string, encoding?: "base64"): { size: number };
  listFiles(folder: string, path?: string, offset?: number): { entries: FileEntry[]; truncated: boolean };
  stat(folder: string, path?: string): FileStat;
  removeFile(folder: string, path: string): void;
  /** Writes to the step's log (A6.14); console does the same. Logging never fails a step. */
  log(level: "debug" | "info" | "warn" | "error", message: string): void;
  debug(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  /** The host's time, recorded (A6.15). */
  now(): { unixMs: number; iso: string };
  /** How many steps a field with the mark steps has. */
  steps(field: string): number;
  /** How many steps each branch of a field with the mark branches has. */
  branches(field: string): number[];
}

declare const sentinel: {
  /** Makes p what this module provides. Call it once, at the top of the script. */
  plugin(p: Plugin): void;
  Error: typeof SentinelError;
};

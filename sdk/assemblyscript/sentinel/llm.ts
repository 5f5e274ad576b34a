import { Value, absent, count, flag, int, list, object, optional, text, texts } from "./value";

/** An entry that a turn adds to a conversation. */
export class Message {
  toolCallId: string = "";
  /** Of a tool's result: the command. */
  name: string = "";
  isError: bool = false;

  /** Role is "user" or "tool". */
  constructor(public role: string, public content: string) {}

  toValue(): Value {
    return object().set("role", text(this.role)).set("content", text(this.content)).set("toolCallId", optional(this.toolCallId))
      .set("name", optional(this.name)).set("isError", flag(this.isError));
  }
}

function listOf(messages: Message[]): Value {
  const l = list();
  for (let i = 0; i < messages.length; i++) l.push(messages[i].toValue());
  return l;
}

/**
 * Puts other messages in the place of those from "from" up to "to", counted from 0. The
 * result of a tool stays behind the call that it belongs to.
 */
export class Replacement {
  constructor(public from: i64, public to: i64, public messages: Message[] = []) {}
}

// A Turn is one request to a model. The host stores the conversation: the first turn
// names none, later ones append only new messages.
export class Turn {
  /** From the reply before; empty starts one. */
  conversation: string = "";
  append: Message[] = [];
  /** Only in the first turn. */
  system: string = "";
  /** Only in the first turn: the host adds $ragContext and the variables. */
  context: bool = false;
  model: string = "";
  /** A number, or absent for the default of the model. */
  temperature: Value = absent;
  maxTokens: i64 = 0;
  /** Commands and patterns that are offered to the model. */
  tools: string[] = [];
  /** JSON Schema of the reply, or absent. */
  schema: Value = absent;
  /** Of messages that the conversation has, in their order: keeps it within the window of its model. */
  replace: Replacement[] = [];
  /** Answers without a change of the conversation. */
  aside: bool = false;

  /** A turn with this message of the user. */
  static of(content: string): Turn {
    const t = new Turn();
    t.append.push(new Message("user", content));
    return t;
  }

  toValue(): Value {
    const replace = list();
    for (let i = 0; i < this.replace.length; i++) {
      const r = this.replace[i];
      replace.push(object().set("from", int(r.from)).set("to", int(r.to)).set("with", listOf(r.messages)));
    }
    return object().set("conversation", optional(this.conversation)).set("append", listOf(this.append)).set("system", optional(this.system))
      .set("context", flag(this.context)).set("model", optional(this.model)).set("temperature", this.temperature)
      .set("maxTokens", count(this.maxTokens)).set("tools", this.tools.length ? texts(this.tools) : absent).set("schema", this.schema)
      .set("replace", this.replace.length ? replace : absent).set("aside", flag(this.aside));
  }
}

/** A model's request to run a command. */
export class ToolCall {
  id: string;
  name: string;
  arguments: Value;

  constructor(v: Value) {
    this.id = v.get("id").asText();
    this.name = v.get("name").asText();
    this.arguments = v.get("arguments");
  }
}

/** The tokens and the cost of turns. */
export class Usage {
  inputTokens: i64;
  outputTokens: i64;
  costUsd: f64;
  calls: i64;

  constructor(v: Value) {
    this.inputTokens = v.get("inputTokens").asInt();
    this.outputTokens = v.get("outputTokens").asInt();
    this.costUsd = v.get("costUsd").asFloat();
    this.calls = v.get("calls").asInt(1);
  }
}

/** The response of the model. */
export class Reply {
  conversation: string;
  /** Without the text of tool calls. */
  text: string;
  /** The text read as JSON, absent if it is not JSON. */
  json: Value;
  /** Violations of the schema. */
  problems: string[];
  toolCalls: ToolCall[] = [];
  /** "stop", "tools" or "length". */
  finish: string;
  /** Tokens that a turn may have beside its reply; 0 if the host does not know that. */
  inputLimit: i64;
  usage: Usage;
  provider: string;
  model: string;

  constructor(v: Value) {
    this.conversation = v.get("conversation").asText();
    this.text = v.get("text").asText();
    this.json = v.get("json");
    this.problems = v.get("problems").asTexts();
    this.finish = v.get("finish").asText("stop");
    this.inputLimit = v.get("inputLimit").asInt();
    this.usage = new Usage(v.get("usage"));
    this.provider = v.get("provider").asText();
    this.model = v.get("model").asText();
    const calls = v.get("toolCalls");
    for (let i = 0; i < calls.length; i++) this.toolCalls.push(new ToolCall(calls.at(i)));
  }
}

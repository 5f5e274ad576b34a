import { Code, Fault, Outcome } from "./fault";
import { Value, absent, orNull } from "./value";

// A Block names nested steps to run: the path of a field that holds them, "then" or
// "branches.0", and variables, an object, to set in the scope before they start.
export class Block {
  constructor(public field: string, public vars: Value = absent) {}
}

/** Options for several blocks. */
export class BlockOptions {
  /** The first failure cancels the other blocks. */
  failFast: bool = false;
  /** The number of blocks at once; 0 is all. */
  concurrency: i64 = 0;
  /** After a failure no further block begins; those that run go on to their end. */
  drain: bool = false;
  /** What a block sets is not kept behind it, also of a single block. */
  isolated: bool = false;
  /** How many blocks the calls of the step have together, for people; 0 is not known. */
  total: i64 = 0;
}

/** The result of a block. */
export class BlockResult {
  /** Null for success. */
  fault: Fault | null = null;
  /** Of the block's last step. */
  output: Value;
  /** It did not begin, because another block failed. */
  skipped: bool;

  constructor(v: Value) {
    this.output = orNull(v.get("output"));
    this.skipped = v.get("skipped").asBool();
    const error = v.get("error");
    if (!v.get("success").asBool()) this.fault = error.given ? Fault.from(error) : new Fault(Code.Internal, "sentinel_block: a block ended without a reason");
  }

  get success(): bool { return this.fault === null; }
}

export function blockResults(v: Value, want: i32): Outcome<BlockResult[]> {
  if (v.length != want) return Outcome.fail<BlockResult[]>(new Fault(Code.Internal, "sentinel_block: not one result for each block"));
  const results: BlockResult[] = [];
  for (let i = 0; i < want; i++) results.push(new BlockResult(v.at(i)));
  return Outcome.of(results);
}

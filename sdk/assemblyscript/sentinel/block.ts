import { Code, Fault, Outcome } from "./fault";
import { Value, absent, orNull } from "./value";

// A Block names nested steps to run: the path of a field that holds them, "then" or
// "branches.0", and variables, an object, to set in the scope before they start.
export class Block {
  constructor(public field: string, public vars: Value = absent) {}
}

/** The result of a block. */
export class BlockResult {
  /** Null for success. */
  fault: Fault | null = null;
  /** Of the block's last step. */
  output: Value;

  constructor(v: Value) {
    this.output = orNull(v.get("output"));
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

import { complain } from "./kernel";

// abort is what a failed assertion, a throw and an index out of bounds end in; the
// build names it to the compiler. The host shows the line with the trap.
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  const what = message === null ? "aborted" : message;
  const where = file === null ? "" : " at " + file + ":" + line.toString() + ":" + column.toString();
  complain("panic: " + what + where);
  unreachable();
}

import { complain } from "./kernel";

// abort is called for a failed assertion, a throw and an index out of bounds; the build
// passes its name to the compiler. The host shows the line with the trap.
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  const what = message === null ? "aborted" : message;
  const where = file === null ? "" : " at " + file + ":" + line.toString() + ":" + column.toString();
  complain("panic: " + what + where);
  unreachable();
}

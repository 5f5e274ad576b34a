// The memory of the kernel: blocks of bytes behind handles, outside the guest's
// own memory, read and written eight bytes at a time.

@external("extism:host/env", "alloc")
declare function kernelAlloc(size: u64): u64;
@external("extism:host/env", "free")
declare function kernelFree(handle: u64): void;
@external("extism:host/env", "length")
declare function kernelLength(handle: u64): u64;
@external("extism:host/env", "load_u8")
declare function kernelLoad8(address: u64): u32;
@external("extism:host/env", "load_u64")
declare function kernelLoad64(address: u64): u64;
@external("extism:host/env", "store_u8")
declare function kernelStore8(address: u64, byte: u32): void;
@external("extism:host/env", "store_u64")
declare function kernelStore64(address: u64, word: u64): void;
@external("extism:host/env", "input_length")
declare function kernelInputLength(): u64;
@external("extism:host/env", "input_load_u8")
declare function kernelInput8(offset: u64): u32;
@external("extism:host/env", "input_load_u64")
declare function kernelInput64(offset: u64): u64;
@external("extism:host/env", "output_set")
declare function kernelOutput(handle: u64, size: u64): void;
@external("extism:host/env", "error_set")
declare function kernelError(handle: u64): void;
@external("wasi_snapshot_preview1", "fd_write")
declare function fdWrite(fd: u32, pieces: usize, count: u32, written: usize): u32;

// put copies a text into a new block, as UTF-8.
export function put(text: string): u64 {
  const bytes = String.UTF8.encode(text);
  const from = changetype<usize>(bytes);
  const size = <u64>bytes.byteLength;
  const handle = kernelAlloc(size);
  let i: u64 = 0;
  for (; i + 8 <= size; i += 8) kernelStore64(handle + i, load<u64>(from + <usize>i));
  for (; i < size; i++) kernelStore8(handle + i, load<u8>(from + <usize>i));
  return handle;
}

// take copies a block and frees it; the handle 0 is an empty one.
function take(handle: u64): string {
  if (!handle) return "";
  const size = kernelLength(handle);
  const bytes = new ArrayBuffer(<i32>size);
  const to = changetype<usize>(bytes);
  let i: u64 = 0;
  for (; i + 8 <= size; i += 8) store<u64>(to + <usize>i, kernelLoad64(handle + i));
  for (; i < size; i++) store<u8>(to + <usize>i, <u8>kernelLoad8(handle + i));
  kernelFree(handle);
  return String.UTF8.decode(bytes);
}

// input returns the input of the export.
export function input(): string {
  const size = kernelInputLength();
  const bytes = new ArrayBuffer(<i32>size);
  const to = changetype<usize>(bytes);
  let i: u64 = 0;
  for (; i + 8 <= size; i += 8) store<u64>(to + <usize>i, kernelInput64(i));
  for (; i < size; i++) store<u8>(to + <usize>i, <u8>kernelInput8(i));
  return String.UTF8.decode(bytes);
}

// HostFunction is one import of clause A6: it gets the handle of the request and returns
// that of the answer.
export type HostFunction = (request: u64) => u64;

// exchange makes one host call. The host keeps neither block.
export function exchange(f: HostFunction, request: string): string {
  const handle = put(request);
  const answer = f(handle);
  kernelFree(handle);
  return take(answer);
}

// output sets the export's output. The host owns the block from here on.
export function output(text: string): void {
  kernelOutput(put(text), String.UTF8.byteLength(text));
}

// error sets the export's error, an error object of clause A5.
export function error(text: string): void {
  kernelError(put(text));
}

// complain writes a line to standard error, which the host shows with a trap.
export function complain(line: string): void {
  const bytes = String.UTF8.encode(line + "\n");
  const piece = new StaticArray<u32>(3); // address, size, and what was written
  piece[0] = <u32>changetype<usize>(bytes);
  piece[1] = bytes.byteLength;
  const at = changetype<usize>(piece);
  fdWrite(2, at, 1, at + 8);
}

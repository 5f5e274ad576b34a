//! The memory of the Extism kernel, by which texts are passed: blocks of bytes behind
//! handles, outside the guest's own memory, read and written eight bytes at a time; and
//! the imports of clause A6. Natively there is neither: a
//! [`Host`](super::testing::Host) of the test answers calls.

/// One of the host functions.
#[cfg(target_arch = "wasm32")]
pub type Import = unsafe extern "C" fn(request: u64) -> u64;
#[cfg(not(target_arch = "wasm32"))]
pub type Import = ();

#[cfg(target_arch = "wasm32")]
pub use guest::*;
#[cfg(not(target_arch = "wasm32"))]
pub use native::*;

#[cfg(target_arch = "wasm32")]
mod guest {
    use super::super::{Code, Error, Result};
    use super::Import;

    #[link(wasm_import_module = "extism:host/env")]
    extern "C" {
        fn alloc(n: u64) -> u64;
        fn free(handle: u64);
        fn length(handle: u64) -> u64;
        fn load_u8(at: u64) -> u32;
        fn load_u64(at: u64) -> u64;
        fn store_u8(at: u64, byte: u32);
        fn store_u64(at: u64, word: u64);
        fn input_length() -> u64;
        fn input_load_u8(at: u64) -> u32;
        fn input_load_u64(at: u64) -> u64;
        fn output_set(handle: u64, n: u64);
        fn error_set(handle: u64);
    }

    #[link(wasm_import_module = "extism:host/user")]
    extern "C" {
        pub fn sentinel_command(request: u64) -> u64;
        pub fn sentinel_llm(request: u64) -> u64;
        pub fn sentinel_watch(request: u64) -> u64;
        pub fn sentinel_eval(request: u64) -> u64;
        pub fn sentinel_var(request: u64) -> u64;
        pub fn sentinel_block(request: u64) -> u64;
        pub fn sentinel_spawn(request: u64) -> u64;
        pub fn sentinel_emit(request: u64) -> u64;
        pub fn sentinel_wait(request: u64) -> u64;
        pub fn sentinel_checkpoint(request: u64) -> u64;
        pub fn sentinel_http(request: u64) -> u64;
        pub fn sentinel_log(request: u64) -> u64;
        pub fn sentinel_now(request: u64) -> u64;
        pub fn sentinel_file(request: u64) -> u64;
    }

    // The target has no standard error; other targets implement it with this
    // import.
    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    extern "C" {
        fn fd_write(fd: u32, parts: *const Part, count: u32, written: *mut u32) -> u32;
    }

    /// A part of the guest's memory, as an argument of fd_write.
    #[repr(C)]
    struct Part {
        at: *const u8,
        n: usize,
    }

    // SAFETY, for all of this module: the arguments of the imports are numbers, and
    // the host ends the guest for an invalid handle or address. The bytes of a Part
    // outlive the call.

    /// Passes a request and returns the answer. It frees both blocks, because the host
    /// keeps neither.
    pub fn call(import: Import, request: &str) -> String {
        let handle = store(request);
        let answer = unsafe { import(handle) };
        unsafe { free(handle) };
        let n = if answer == 0 { 0 } else { unsafe { length(answer) } };
        let bytes = read(answer, n, load_u64, load_u8);
        unsafe { free(answer) };
        // Bytes that are not UTF-8 are reported as an invalid answer.
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// The input of the export.
    pub fn input() -> Result<String> {
        let bytes = read(0, unsafe { input_length() }, input_load_u64, input_load_u8);
        String::from_utf8(bytes).map_err(|_| Error::new(Code::Internal, "input: not UTF-8"))
    }

    pub fn set_output(text: &str) {
        unsafe { output_set(store(text), text.len() as u64) }
    }

    /// An error object; the host owns the block from here on, as that of an output.
    pub fn set_error(text: &str) {
        unsafe { error_set(store(text)) }
    }

    #[inline(never)]
    /// Copies a text into a new block.
    fn store(text: &str) -> u64 {
        let handle = unsafe { alloc(text.len() as u64) };
        let mut at = handle;
        let words = text.as_bytes().chunks_exact(8);
        let rest = words.remainder();
        for word in words {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            unsafe { store_u64(at, u64::from_le_bytes(bytes)) };
            at += 8;
        }
        for byte in rest {
            unsafe { store_u8(at, *byte as u32) };
            at += 1;
        }
        handle
    }

    #[inline(never)]
    /// Copies n bytes with two functions: those for the input or those for a block.
    fn read(from: u64, n: u64, word: unsafe extern "C" fn(u64) -> u64, byte: unsafe extern "C" fn(u64) -> u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(n as usize);
        let mut at = 0;
        while at + 8 <= n {
            bytes.extend_from_slice(&unsafe { word(from + at) }.to_le_bytes());
            at += 8;
        }
        while at < n {
            bytes.push(unsafe { byte(from + at) } as u8);
            at += 1;
        }
        bytes
    }

    /// Lets a panic write its message and position as one line to standard error, which
    /// the host reads when a guest traps. The panic then traps.
    pub fn report_panics() {
        std::panic::set_hook(Box::new(|info| {
            let payload = info.payload();
            let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            let mut line = format!("panic: {}", text.unwrap_or("a value without a text").replace('\n', " "));
            if let Some(place) = info.location() {
                line += &format!(" ({}:{}:{})", place.file(), place.line(), place.column());
            }
            line.push('\n');
            let part = Part { at: line.as_ptr(), n: line.len() };
            let mut written = 0;
            unsafe { fd_write(2, &part, 1, &mut written) };
        }));
    }
}

#[cfg(not(target_arch = "wasm32"))]
#[allow(non_upper_case_globals)]
mod native {
    use super::Import;

    pub const sentinel_command: Import = ();
    pub const sentinel_llm: Import = ();
    pub const sentinel_watch: Import = ();
    pub const sentinel_eval: Import = ();
    pub const sentinel_var: Import = ();
    pub const sentinel_block: Import = ();
    pub const sentinel_spawn: Import = ();
    pub const sentinel_emit: Import = ();
    pub const sentinel_wait: Import = ();
    pub const sentinel_checkpoint: Import = ();
    pub const sentinel_http: Import = ();
    pub const sentinel_log: Import = ();
    pub const sentinel_now: Import = ();
    pub const sentinel_file: Import = ();

    /// Natively only the fake host of a test exists.
    pub fn call(_: Import, _: &str) -> String {
        r#"{"error":{"code":"internal","message":"no host: the test must set one"}}"#.to_string()
    }
}

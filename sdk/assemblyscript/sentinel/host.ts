// The host functions, clause A6 of ABI.md. A module imports only those that its code
// uses; the imports list everything that it can do.

@external("extism:host/user", "sentinel_command")
export declare function hostCommand(request: u64): u64;
@external("extism:host/user", "sentinel_llm")
export declare function hostLLM(request: u64): u64;
@external("extism:host/user", "sentinel_watch")
export declare function hostWatch(request: u64): u64;
@external("extism:host/user", "sentinel_eval")
export declare function hostEval(request: u64): u64;
@external("extism:host/user", "sentinel_var")
export declare function hostVar(request: u64): u64;
@external("extism:host/user", "sentinel_block")
export declare function hostBlock(request: u64): u64;
@external("extism:host/user", "sentinel_spawn")
export declare function hostSpawn(request: u64): u64;
@external("extism:host/user", "sentinel_emit")
export declare function hostEmit(request: u64): u64;
@external("extism:host/user", "sentinel_wait")
export declare function hostWait(request: u64): u64;
@external("extism:host/user", "sentinel_checkpoint")
export declare function hostCheckpoint(request: u64): u64;
@external("extism:host/user", "sentinel_http")
export declare function hostHTTP(request: u64): u64;
@external("extism:host/user", "sentinel_log")
export declare function hostLog(request: u64): u64;
@external("extism:host/user", "sentinel_now")
export declare function hostNow(request: u64): u64;
@external("extism:host/user", "sentinel_file")
export declare function hostFile(request: u64): u64;

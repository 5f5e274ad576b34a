// The module that a plugin imports: import { ... } from "./sdk".
export * from "./answers";
export * from "./block";
export * from "./context";
export * from "./fault";
export * from "./file";
export * from "./http";
export * from "./llm";
export * from "./plugin";
export { parse } from "./parse";
export { print, quote } from "./print";
export * from "./value";

import { Value, absent, count, object, optional, text } from "./value";

/** One operation on a folder, clause A6.16. */
export class FileRequest {
  /** Of a write, else absent: an empty file is a text too. */
  text: Value = absent;
  /** "base64" or empty. */
  encoding: string = "";
  offset: i64 = 0;
  /** 0 is the limit of the host. */
  length: i64 = 0;

  /** Folder is the name in the manifest; op is read, write, list, stat or remove; an empty path is the folder itself. */
  constructor(public folder: string, public op: string, public path: string) {}

  toValue(): Value {
    return object().set("folder", text(this.folder)).set("op", text(this.op)).set("path", optional(this.path)).set("text", this.text)
      .set("encoding", optional(this.encoding)).set("offset", count(this.offset)).set("length", count(this.length));
  }
}

export class FileRead {
  text: string;
  /** "base64" if the bytes are not text, else empty. */
  encoding: string;
  /** Of the whole file. */
  size: i64;
  truncated: bool;

  constructor(v: Value) {
    this.text = v.get("text").asText();
    this.encoding = v.get("encoding").asText();
    this.size = v.get("size").asInt();
    this.truncated = v.get("truncated").asBool();
  }
}

export class FileStat {
  exists: bool;
  dir: bool;
  size: i64;
  /** RFC 3339. */
  modified: string;

  constructor(v: Value) {
    this.exists = v.get("exists").asBool();
    this.dir = v.get("dir").asBool();
    this.size = v.get("size").asInt();
    this.modified = v.get("modified").asText();
  }
}

export class Entry {
  name: string;
  dir: bool;
  size: i64;
  /** RFC 3339. */
  modified: string;

  constructor(v: Value) {
    this.name = v.get("name").asText();
    this.dir = v.get("dir").asBool();
    this.size = v.get("size").asInt();
    this.modified = v.get("modified").asText();
  }
}

export class Listing {
  entries: Entry[] = [];
  truncated: bool;

  constructor(v: Value) {
    const entries = v.get("entries");
    for (let i = 0; i < entries.length; i++) this.entries.push(new Entry(entries.at(i)));
    this.truncated = v.get("truncated").asBool();
  }
}

//! Files in folders that are granted to the plugin, clause A6.16. Paths are
//! relative to the folder, with `/`; "" is the folder itself.

use super::{decode, encode, kernel, object, Context, Result, Value};

/// A part of a file.
pub struct FilePart {
    /// Encoded as base64 if `base64` is true, because the bytes are not text.
    pub text: String,
    pub base64: bool,
    /// Of the whole file, in bytes.
    pub size: i64,
    /// There is more after this part.
    pub truncated: bool,
}

impl FilePart {
    /// The bytes; None if the text is not valid base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        if self.base64 {
            return decode(&self.text);
        }
        Some(self.text.clone().into_bytes())
    }
}

/// The entries of a folder, by name.
pub struct Listing {
    pub entries: Vec<Entry>,
    /// There are more entries after these.
    pub truncated: bool,
}

/// One entry of a folder.
pub struct Entry {
    pub name: String,
    pub dir: bool,
    pub size: i64,
    /// As the host gives it.
    pub modified: Value,
}

/// The properties of an existing file or folder.
pub struct Stat {
    pub dir: bool,
    pub size: i64,
    /// As the host gives it.
    pub modified: Value,
}

impl Context<'_> {
    /// Reads at most length bytes, starting at offset; None is the limit of the host,
    /// 160 KiB. A part that ends within a character is encoded as base64.
    pub fn read_file(&mut self, folder: &str, path: &str, offset: i64, length: Option<i64>) -> Result<FilePart> {
        let request = at(folder, "read", path).with_some("offset", Some(offset).filter(|n| *n > 0));
        let answer = self.file(request.with_some("length", length))?;
        Ok(FilePart {
            text: answer.get("text").text_or_empty(),
            base64: answer.get("encoding").as_str() == Some("base64"),
            size: answer.get("size").as_i64().unwrap_or(0),
            truncated: answer.get("truncated").as_bool().unwrap_or(false),
        })
    }

    /// Replaces a file atomically, creates the folders of its path, and returns its
    /// size. It may be repeated after a crash.
    pub fn write_file(&mut self, folder: &str, path: &str, text: &str) -> Result<i64> {
        let answer = self.file(at(folder, "write", path).with("text", text))?;
        Ok(answer.get("size").as_i64().unwrap_or(0))
    }

    /// Like [`Context::write_file`], for bytes that are not text.
    pub fn write_bytes(&mut self, folder: &str, path: &str, bytes: &[u8]) -> Result<i64> {
        let answer = self.file(at(folder, "write", path).with("text", encode(bytes)).with("encoding", "base64"))?;
        Ok(answer.get("size").as_i64().unwrap_or(0))
    }

    /// Lists at most 1,000 entries, starting at offset.
    pub fn list_files(&mut self, folder: &str, path: &str, offset: i64) -> Result<Listing> {
        let request = at(folder, "list", path).with_some("offset", Some(offset).filter(|n| *n > 0));
        let answer = self.file(request)?;
        let entry = |e: &Value| Entry {
            name: e.get("name").text_or_empty(),
            dir: e.get("dir").as_bool().unwrap_or(false),
            size: e.get("size").as_i64().unwrap_or(0),
            modified: e.get("modified").clone(),
        };
        Ok(Listing {
            entries: answer.get("entries").items().iter().map(entry).collect(),
            truncated: answer.get("truncated").as_bool().unwrap_or(false),
        })
    }

    /// The properties of a path; None if it does not exist.
    pub fn stat_file(&mut self, folder: &str, path: &str) -> Result<Option<Stat>> {
        let answer = self.file(at(folder, "stat", path))?;
        let stat = Stat {
            dir: answer.get("dir").as_bool().unwrap_or(false),
            size: answer.get("size").as_i64().unwrap_or(0),
            modified: answer.get("modified").clone(),
        };
        Ok(Some(stat).filter(|_| answer.get("exists").as_bool() == Some(true)))
    }

    /// Removes a file or an empty folder. A missing one is not an error.
    pub fn remove_file(&mut self, folder: &str, path: &str) -> Result<()> {
        self.file(at(folder, "remove", path)).map(|_| ())
    }

    fn file(&mut self, request: Value) -> Result<Value> {
        self.call("sentinel_file", kernel::sentinel_file, request)
    }
}

fn at(folder: &str, op: &str, path: &str) -> Value {
    object! { "folder" => folder, "op" => op }.with_some("path", Some(path).filter(|p| !p.is_empty()))
}

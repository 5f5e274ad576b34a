//! Files of folders that the plugin's grant names, clause A6.16. Paths are
//! relative to the folder, with `/`; "" is the folder itself.

use super::{decode, encode, kernel, object, Context, Result, Value};

/// A part of a file.
pub struct FilePart {
    /// As base64, if `base64` says so: bytes that are no text.
    pub text: String,
    pub base64: bool,
    /// Of the whole file, in bytes.
    pub size: i64,
    /// There is more after this part.
    pub truncated: bool,
}

impl FilePart {
    /// The bytes; None if the host sent something else than it said.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        if self.base64 {
            return decode(&self.text);
        }
        Some(self.text.clone().into_bytes())
    }
}

/// What a folder holds, by name.
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

/// What is known of a file or folder that is there.
pub struct Stat {
    pub dir: bool,
    pub size: i64,
    /// As the host gives it.
    pub modified: Value,
}

impl Context<'_> {
    /// Reads the bytes from offset on, at most length of them; None is the host's
    /// most, 160 KiB. A part may end within a character and is base64 then.
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

    /// Replaces a file as a whole or not at all, making folders on the way, and
    /// returns its size. It may be repeated after a crash.
    pub fn write_file(&mut self, folder: &str, path: &str, text: &str) -> Result<i64> {
        let answer = self.file(at(folder, "write", path).with("text", text))?;
        Ok(answer.get("size").as_i64().unwrap_or(0))
    }

    /// Like [`Context::write_file`], for what is no text.
    pub fn write_bytes(&mut self, folder: &str, path: &str, bytes: &[u8]) -> Result<i64> {
        let answer = self.file(at(folder, "write", path).with("text", encode(bytes)).with("encoding", "base64"))?;
        Ok(answer.get("size").as_i64().unwrap_or(0))
    }

    /// Lists at most 1,000 entries from the one at offset on.
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

    /// What is at a path; None for nothing.
    pub fn stat_file(&mut self, folder: &str, path: &str) -> Result<Option<Stat>> {
        let answer = self.file(at(folder, "stat", path))?;
        let stat = Stat {
            dir: answer.get("dir").as_bool().unwrap_or(false),
            size: answer.get("size").as_i64().unwrap_or(0),
            modified: answer.get("modified").clone(),
        };
        Ok(Some(stat).filter(|_| answer.get("exists").as_bool() == Some(true)))
    }

    /// Removes a file or an empty folder. What is not there is no error.
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

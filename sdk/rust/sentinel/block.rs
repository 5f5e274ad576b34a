//! Running nested steps, clause A6.8.

use super::{kernel, object, Code, Context, Error, Result, Value};

/// Nested steps to execute.
pub struct Block {
    /// The path of a field that holds them: `then`, `branches.0`, `branches.lint`.
    pub field: String,
    /// An object of variables to set in the scope before they start.
    pub vars: Option<Value>,
}

/// Options for several blocks.
#[derive(Clone, Copy, Default)]
pub struct BlockOptions {
    /// The first failure cancels the other blocks.
    pub fail_fast: bool,
    /// The number of blocks at once; 0 is all.
    pub concurrency: i64,
    /// After a failure no further block begins; those that run go on to their end.
    pub drain: bool,
    /// What a block sets is not kept behind it, also of a single block.
    pub isolated: bool,
    /// How many blocks the calls of the step have together, for people; 0 is not known.
    pub total: i64,
}

/// The result of a block: `error` is given if `success` is false.
pub struct BlockResult {
    pub success: bool,
    /// Of the block's last step.
    pub output: Value,
    pub error: Option<Error>,
    /// It did not begin, because another block failed; see [BlockOptions::drain].
    pub skipped: bool,
}

impl Context<'_> {
    /// Runs nested steps in the scope of the step and returns the output of the
    /// last one, or the error that ended them, unchanged.
    pub fn block(&mut self, field: &str, vars: Option<Value>) -> Result<Value> {
        let blocks = [Block { field: field.to_string(), vars }];
        let result = self.blocks(&blocks, BlockOptions::default())?.remove(0);
        match result.error {
            Some(error) => Err(error),
            None => Ok(result.output),
        }
    }

    /// Runs several blocks as parallel branches, each on a snapshot of the
    /// variables. The results are in the order of the blocks.
    pub fn blocks(&mut self, blocks: &[Block], options: BlockOptions) -> Result<Vec<BlockResult>> {
        let block = |b: &Block| object! { "field" => &b.field }.with_some("vars", b.vars.as_ref());
        let request = object! { "blocks" => Value::List(blocks.iter().map(block).collect()) }
            .with_some("failFast", Some(true).filter(|_| options.fail_fast))
            .with_some("drain", Some(true).filter(|_| options.drain))
            .with_some("isolated", Some(true).filter(|_| options.isolated))
            .with_some("concurrency", Some(options.concurrency).filter(|n| *n > 0))
            .with_some("total", Some(options.total).filter(|n| *n > 0));
        let answer = self.call("sentinel_block", kernel::sentinel_block, request)?;
        let found = answer.get("blocks").items();
        if found.len() != blocks.len() {
            return Err(Error::new(Code::Internal, format!("sentinel_block: {} results for {} blocks", found.len(), blocks.len())));
        }
        let result = |(block, result): (&Block, &Value)| {
            let success = result.get("success").as_bool().unwrap_or(false);
            let silent = || Error::new(Code::Internal, format!("block {}: ended without a reason", block.field));
            let error = if success { None } else { Some(Error::from_value(result.get("error")).unwrap_or_else(silent)) };
            BlockResult { success, output: result.get("output").clone(), error, skipped: result.get("skipped").as_bool().unwrap_or(false) }
        };
        Ok(blocks.iter().zip(found).map(result).collect())
    }
}

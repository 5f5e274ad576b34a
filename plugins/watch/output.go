package watch

const output = `{
  "type": "object",
  "properties": {
    "lines": {"type": "array", "description": "Of an execution or a file: the lines that no rule suppresses, [{text, classification, lineNumber, stream, timestamp}]; at most those that one result can hold."},
    "text": {"type": "string", "description": "The lines as text of at most 32 KB: errors first, then warnings with the lines around them, then the last lines. Of a run: how it ended."},
    "finished": {"type": "boolean", "description": "Whether the execution or run has ended."},
    "from": {"description": "Where the watched range begins."},
    "executionId": {"type": "string", "description": "The execution that was watched."},
    "exitCode": {"type": "integer", "description": "Its exit code, once it has ended."},
    "success": {"type": "boolean", "description": "Whether the exit code is 0, or the run completed."},
    "timedOut": {"type": "boolean", "description": "Of a file: timeoutMs ended the watch."},
    "position": {"type": "string", "description": "Of a file: where the next watch continues, as its from."},
    "event": {"type": "object", "description": "Of an event: {name, id, source, time, data}."}
  }
}`

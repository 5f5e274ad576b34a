package watch

const output = `{
  "type": "object",
  "properties": {
    "executionId": {"type": "string", "description": "The execution that was watched."},
    "lines": {"type": "array", "description": "The lines that no rule suppresses, [{text, classification, lineNumber, stream, timestamp}]; at most those that one result can hold."},
    "text": {"type": "string", "description": "The lines as text of at most 32 KB: errors first, then warnings with the lines around them, then the last lines."},
    "finished": {"type": "boolean", "description": "Whether the execution or the run has ended; of a file, whether the line that until says was read."},
    "exitCode": {"type": "integer", "description": "Its exit code, once it has ended."},
    "success": {"type": "boolean", "description": "Whether the exit code is 0, or the run was a success."},
    "file": {"type": "string", "description": "The file that was watched."},
    "position": {"type": "string", "description": "Of a file: where a later watch goes on, as its from."},
    "timedOut": {"type": "boolean", "description": "Of a file: whether timeoutMs ended the watch."},
    "status": {"type": "string", "description": "Of a run: how it ended. The other fields are those of a sentinel step."},
    "event": {"type": "object", "description": "Of a watch for an event: {name, id, source, time, data}."}
  }
}`

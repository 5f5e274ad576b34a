// Package fields declares what an HTTP request has, as members of a JSON Schema. Steps of type http and the command
// http/request that they call have the same ones; the package has no imports, as the guest is built with it.
package fields

// Request are the properties of a request.
const Request = `
    "url": {"type": "string", "minLength": 1, "description": "URL with http or https. Data belongs into query, which is escaped.", "examples": ["https://api.example.com/users"]},
    "method": {"type": "string", "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "default": "GET", "description": "Method."},
    "query": {"type": "object", "description": "Added to the query of the URL; a list repeats its name, null leaves it out."},
    "headers": {"type": "object", "additionalProperties": ` + text + `, "description": "Headers by name. {\"secret\": NAME} is the value of a secret."},
    "json": {"description": "Body as JSON."},
    "form": {"type": "object", "description": "Body as a form; values as in query."},
    "body": {"type": "string", "description": "Body as it is."},
    "auth": {"type": "object", "description": "Header Authorization: {\"bearer\": TOKEN} or {\"basic\": {\"username\", \"password\"}}.", "properties": {"bearer": ` + text + `,
      "basic": {"type": "object", "properties": {"username": ` + text + `, "password": ` + text + `}, "required": ["username", "password"], "additionalProperties": false}},
      "minProperties": 1, "maxProperties": 1, "additionalProperties": false},
    "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 1000000000000, "default": 30000, "description": "Time limit of the request with its redirects and body."},
    "redirects": {"type": "integer", "minimum": 0, "maximum": 50, "default": 5, "description": "Redirects that are followed; with 0 a redirect is the answer."},
    "expect": {"anyOf": [` + status + `, {"type": "array", "items": ` + status + `, "minItems": 1}], "default": "2xx", "description": "Statuses that are a success: 200, \"2xx\", \"200-204\" or a list."},
    "idempotencyKey": {"anyOf": [{"type": "boolean"}, {"type": "string", "minLength": 1}], "description": "true: send the header Idempotency-Key, the same in all attempts and after a crash; or the name of the header."}`

const (
	text   = `{"anyOf": [{"type": "string"}, {"type": "object", "properties": {"secret": {"type": "string"}}, "required": ["secret"], "additionalProperties": false}]}`
	status = `{"anyOf": [{"type": "integer", "minimum": 100, "maximum": 599}, {"type": "string", "pattern": "^[1-5]([0-9][0-9](-[1-5][0-9][0-9])?|xx)$"}]}`
)

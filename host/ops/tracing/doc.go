// Package tracing is the PROCESS telling OpenTelemetry how runs spend their
// time. It is off unless an endpoint is configured.
//
// A [Tracer] makes spans of what the engine tells and sends them as OTLP over
// HTTP in its JSON form, to a collector or a service that takes that:
//
//	run NAME                 from the run's start to its end, whatever lies between
//	  iteration
//	    step TYPE            nested steps are below the step that runs them
//	      attempt
//	        call             "command code/read", "chat MODEL", "wait", "block"
//	  run NAME               a child run, below its root
//
// # Ids
//
// All ids but those of calls follow from the run: the trace id of a root run is
// its run id without the dashes, and those of spans are digests of the place in
// the run. So a run that goes on in another process, days later, continues its
// trace, and a run's id gives its trace. A run that was started by
// a request with a traceparent belongs to that trace, see [Options.Parent].
//
// # Ends
//
// A span is sent when what it is about has ended, and nothing is held open for
// it meanwhile but a time. Spans of a run that parks for days are there as far
// as it has come; the run's own comes last.
//
// # Attributes
//
//	sentinel.id, sentinel.run.id, sentinel.run.root, sentinel.run.status,
//	sentinel.run.reason, sentinel.revision, sentinel.iteration,
//	sentinel.step.address, sentinel.step.type, sentinel.step.name,
//	sentinel.step.skipped, sentinel.attempt, sentinel.call.function,
//	sentinel.call.label, sentinel.retry.category, error.type,
//	gen_ai.operation.name, gen_ai.request.model, gen_ai.usage.input_tokens,
//	gen_ai.usage.output_tokens, sentinel.cost_usd
package tracing

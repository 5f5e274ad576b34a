// Package metrics is the PROCESS counting what it does, for Prometheus.
//
// A [Metrics] receives reports by its methods ([Metrics.Progress] is a
// function for [runtime.Observer]) and asks for the rest when it is scraped.
// It has a registry of its own, so several hosts fit into one process.
//
//	sentinel_build_info{version}
//	sentinel_runs{status}                           live runs
//	sentinel_runs_total{status}                     runs that ended
//	sentinel_run_seconds{status}                    how long they took
//	sentinel_iterations_total
//	sentinel_steps_total{type,outcome}              ok, failed, skipped
//	sentinel_step_seconds{type}
//	sentinel_retries_total{category}
//	sentinel_calls_total{function,outcome}          host calls that take time
//	sentinel_model_tokens_total{direction}          input, output
//	sentinel_model_cost_usd_total
//	sentinel_trigger_fires_total{type,outcome}
//	sentinel_events_total
//	sentinel_definitions, sentinel_plugins
//	sentinel_store_commits_total, sentinel_store_bytes, sentinel_store_stalled
//	sentinel_git_commands_total, sentinel_git_seconds_total
//	sentinel_feed_subscribers, sentinel_feed_entries_total,
//	sentinel_feed_gaps_total, sentinel_feed_lost_total,
//	sentinel_feed_dropped_total, sentinel_feed_refused_total
//	sentinel_http_requests_total{route,code}
//	sentinel_http_request_seconds{route}
//
// and those of the Go runtime and the process. Labels hold nothing that grows
// with use: no run, no sentinel, no event. Names that plugins choose are cut
// off at a bound; what comes after it is "other".
package metrics

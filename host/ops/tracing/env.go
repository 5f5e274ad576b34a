package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// FromEnv reads the variables of the OpenTelemetry specification, with getenv
// as os.Getenv is. False means that tracing is not asked for: no endpoint is
// set, or it is switched off. What is asked for and cannot be done is an error.
//
//	OTEL_EXPORTER_OTLP_TRACES_ENDPOINT   the URL as it is
//	OTEL_EXPORTER_OTLP_ENDPOINT          the URL without /v1/traces
//	OTEL_EXPORTER_OTLP_[TRACES_]HEADERS, _TIMEOUT (ms), _COMPRESSION (gzip, none)
//	OTEL_EXPORTER_OTLP_[TRACES_]PROTOCOL http/json; http/protobuf is answered in JSON; grpc is an error
//	OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES
//	OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG
//	OTEL_TRACES_EXPORTER (otlp, none), OTEL_SDK_DISABLED (true)
func FromEnv(getenv func(string) string) (Options, bool, error) {
	var o Options
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return o, false, nil
	}
	// The one that is about traces alone comes first.
	either := func(name string) (string, string) {
		for _, prefix := range []string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} {
			if v := strings.TrimSpace(getenv(prefix + name)); v != "" {
				return prefix + name, v
			}
		}
		return "", ""
	}
	name, endpoint := either("ENDPOINT")
	if endpoint == "" {
		return o, false, nil
	}
	o.Endpoint = endpoint
	if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		o.Endpoint = strings.TrimSuffix(endpoint, "/") + "/v1/traces"
	}
	var bad []error
	problem := func(name, value, why string) {
		bad = append(bad, fmt.Errorf("environment %s=%q: %s", name, value, why))
	}
	if kind := getenv("OTEL_TRACES_EXPORTER"); kind != "" && kind != "otlp" {
		problem("OTEL_TRACES_EXPORTER", kind, "only otlp and none are known")
	}
	switch name, v := either("PROTOCOL"); v {
	case "", "http/json", "http/protobuf": // a collector for the latter over HTTP accepts JSON too
	default:
		problem(name, v, "only http/json is spoken")
	}
	switch name, v := either("COMPRESSION"); v {
	case "", "none":
	case "gzip":
		o.Compress = true
	default:
		problem(name, v, "only gzip and none are known")
	}
	if name, v := either("TIMEOUT"); v != "" {
		ms, err := strconv.ParseInt(v, 10, 32)
		if err != nil || ms <= 0 {
			problem(name, v, "not a number of milliseconds")
		}
		o.Timeout = time.Duration(ms) * time.Millisecond
	}
	if name, v := either("HEADERS"); v != "" {
		var ok bool
		if o.Headers, ok = pairs(v); !ok {
			problem(name, "...", "not a list of key=value") // the value is a secret
		}
	}
	for _, v := range []string{"CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE"} {
		if name, file := either(v); file != "" {
			problem(name, file, "not known; use a collector on this machine, or the system's certificates")
		}
	}
	o.Service = getenv("OTEL_SERVICE_NAME")
	if v := getenv("OTEL_RESOURCE_ATTRIBUTES"); v != "" {
		var ok bool
		if o.Resource, ok = pairs(v); !ok {
			problem("OTEL_RESOURCE_ATTRIBUTES", v, "not a list of key=value")
		}
	}
	keep := true // a sampler that keeps nothing is as good as no tracing
	switch sampler, arg := getenv("OTEL_TRACES_SAMPLER"), getenv("OTEL_TRACES_SAMPLER_ARG"); sampler {
	case "", "always_on", "parentbased_always_on":
	case "always_off", "parentbased_always_off":
		keep = false
	case "traceidratio", "parentbased_traceidratio":
		if arg == "" {
			break // all of them
		}
		ratio, err := strconv.ParseFloat(arg, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			problem("OTEL_TRACES_SAMPLER_ARG", arg, "not between 0 and 1")
		}
		o.Sample, keep = ratio, ratio > 0
	default:
		problem("OTEL_TRACES_SAMPLER", sampler, "not known")
	}
	if err := errors.Join(bad...); err != nil {
		return Options{}, false, err
	}
	return o, keep, nil
}

// pairs reads k=v,k2=v2 with values in percent-encoding.
func pairs(list string) (map[string]string, bool) {
	out := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		k, v, ok := strings.Cut(pair, "=")
		k = strings.TrimSpace(k)
		value, err := url.PathUnescape(strings.TrimSpace(v))
		if !ok || k == "" || err != nil || strings.ContainsAny(k+value, "\r\n") {
			return nil, false
		}
		out[k] = value
	}
	return out, true
}

package tracing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/ops/tracing"
)

func TestFromEnv(t *testing.T) {
	for _, c := range []struct {
		env  string // lines
		want tracing.Options
		on   bool
		err  string
	}{
		{"", tracing.Options{}, false, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/", tracing.Options{Endpoint: "http://c:4318/v1/traces"}, true, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318\nOTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://d/x", tracing.Options{Endpoint: "https://d/x"}, true, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c\nOTEL_SDK_DISABLED=TRUE", tracing.Options{}, false, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c\nOTEL_TRACES_EXPORTER=none", tracing.Options{}, false, ""},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c\nOTEL_TRACES_SAMPLER=always_off", tracing.Options{Endpoint: "http://c"}, false, ""},
		{
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c\nOTEL_EXPORTER_OTLP_HEADERS=a=b,api-key=x%20y\nOTEL_EXPORTER_OTLP_TIMEOUT=1500\nOTEL_EXPORTER_OTLP_COMPRESSION=gzip\n" +
				"OTEL_SERVICE_NAME=mine\nOTEL_RESOURCE_ATTRIBUTES=host.name=h\nOTEL_TRACES_SAMPLER=parentbased_traceidratio\nOTEL_TRACES_SAMPLER_ARG=0.25\nOTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
			tracing.Options{
				Endpoint: "http://c", Headers: map[string]string{"a": "b", "api-key": "x y"}, Timeout: 1500 * time.Millisecond, Compress: true,
				Service: "mine", Resource: map[string]string{"host.name": "h"}, Sample: 0.25,
			}, true, "",
		},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c\nOTEL_EXPORTER_OTLP_PROTOCOL=grpc", tracing.Options{}, false, `OTEL_EXPORTER_OTLP_PROTOCOL="grpc": only http/json`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c\nOTEL_EXPORTER_OTLP_HEADERS=secret", tracing.Options{}, false, `OTEL_EXPORTER_OTLP_HEADERS="...": not a list`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c\nOTEL_TRACES_SAMPLER=traceidratio\nOTEL_TRACES_SAMPLER_ARG=7", tracing.Options{}, false, "not between 0 and 1"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c\nOTEL_TRACES_SAMPLER=odd\nOTEL_EXPORTER_OTLP_TIMEOUT=x\nOTEL_EXPORTER_OTLP_CERTIFICATE=/f", tracing.Options{}, false, "TIMEOUT=\"x\": not a number of milliseconds\nenvironment OTEL_EXPORTER_OTLP_CERTIFICATE"},
	} {
		env := map[string]string{}
		for line := range strings.Lines(c.env) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			env[k] = v
		}
		got, on, err := tracing.FromEnv(func(name string) string { return env[name] })
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", c.env, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || on != c.on {
			t.Errorf("%s: %v %s", c.env, on, diff)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []tracing.Options{{}, {Endpoint: "ftp://x"}, {Endpoint: "x:4318"}, {Endpoint: "http://x", Sample: -1}, {Endpoint: "http://x", Sample: 2}} {
		if _, err := tracing.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

func FuzzFromEnv(f *testing.F) {
	f.Add("http://c", "a=b", "0.5", "10")
	f.Add("%", "a=%zz,=,", "NaN", "-1")
	f.Fuzz(func(t *testing.T, endpoint, headers, ratio, timeout string) {
		env := map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_HEADERS": headers, "OTEL_EXPORTER_OTLP_TIMEOUT": timeout,
			"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": ratio, "OTEL_RESOURCE_ATTRIBUTES": headers,
		}
		o, _, err := tracing.FromEnv(func(name string) string { return env[name] })
		if err == nil && (!(o.Sample >= 0 && o.Sample <= 1) || o.Timeout < 0) {
			t.Errorf("%+v", o)
		}
	})
}

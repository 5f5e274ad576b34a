package llm

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// tlsFault names an error of the connection's encryption, nil for every other
// one. Such an error is permanent: neither a certificate nor an address changes
// because a step retries, and each attempt would hide the cause of the one before.
func tlsFault(c chosen, who string, err error) error {
	problem, hint := describeTLS(err)
	if problem == "" {
		return nil
	}
	return &abi.Error{Code: abi.Unavailable, Permanent: true, Message: fmt.Sprintf("%s: TLS: %s", who, problem), Hint: strings.ReplaceAll(hint, "{url}", c.provider.BaseURL)}
}

// plainAnswer is what Go makes of a TLS record in the place of an HTTP answer.
const plainAnswer = `malformed HTTP response "\x15\x03`

// describeTLS says what is wrong with the encryption and what to do about it;
// {url} in the hint stands for the base URL.
func describeTLS(err error) (problem, hint string) {
	var (
		invalid   x509.CertificateInvalidError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		verify    *tls.CertificateVerificationError
		op        *net.OpError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate is not valid now: it holds " + validity(invalid.Cert), "renew the certificate, or set this machine's clock"
	case errors.As(err, &invalid):
		return "the server's certificate cannot be used: " + invalid.Error(), "the server needs another certificate"
	case errors.As(err, &authority):
		return "the server's certificate is from an unknown authority", "add the authority's certificate to the system's, or name its file in SSL_CERT_FILE"
	case errors.As(err, &host):
		return "the server's certificate is for another host: " + host.Error(), "name the host in the base URL as the certificate does; now it is {url}"
	case errors.As(err, &verify):
		return "the server's certificate cannot be checked: " + verify.Err.Error(), "the server needs another certificate"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "the server does not speak TLS on this port", "check the port; if the server has no TLS write http:// in the base URL, now {url}, and the key is sent unencrypted"
	case strings.Contains(err.Error(), plainAnswer):
		return "the server speaks TLS on this port and got plain HTTP", "write https:// in the base URL, now {url}"
	case errors.As(err, &op) && op.Op == "remote error": // an alert, whose type package tls keeps to itself
		return "the server refused the connection: " + op.Err.Error(), "it may want a client certificate or another version of TLS"
	case errors.As(err, &op) && op.Op == "local error", strings.Contains(err.Error(), ": tls: "):
		return "no connection: " + err.Error(), "it may speak another version of TLS"
	}
	return "", ""
}

func validity(cert *x509.Certificate) string {
	if cert == nil {
		return "for another time"
	}
	return fmt.Sprintf("from %s to %s", cert.NotBefore.UTC().Format(time.DateOnly), cert.NotAfter.UTC().Format(time.DateOnly))
}

// wantsTLS matches how servers answer plain HTTP on their TLS port.
var wantsTLS = lazyregexp.New(`(?i)HTTP request (?:was sent )?to (?:an )?HTTPS (?:server|port)|use the HTTPS scheme`)

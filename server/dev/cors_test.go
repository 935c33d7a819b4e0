package dev

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/rest"
)

// corsRow is a row of protocol/blob.md 20.4, and a verb that has no Vary.
type corsRow struct {
	rules, method, origin string
	vary, allows          string
	exposes               bool
}

const (
	corsExact = `<CorsRule><AllowedOrigins>http://a.test,http://*.contoso.com</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>` +
		`<MaxAgeInSeconds>7</MaxAgeInSeconds><ExposedHeaders>*</ExposedHeaders><AllowedHeaders>x-ms-*</AllowedHeaders></CorsRule>`
	corsAll = `<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>` +
		`<MaxAgeInSeconds>7</MaxAgeInSeconds><ExposedHeaders>*</ExposedHeaders><AllowedHeaders>x-ms-*</AllowedHeaders></CorsRule>`
)

func corsRows() []corsRow {
	const page, sub, other = "http://a.test", "http://app.contoso.com", "http://b.test"
	return []corsRow{
		{"", "GET", "", "", "", false},
		{"", "GET", page, "", "", false},
		{corsExact, "GET", "", "Origin", "", false},
		{corsExact, "GET", page, "Origin", page, true},
		{corsExact, "GET", sub, "Origin", sub, true},
		{corsExact, "GET", other, "Origin", "", false},
		{corsExact, "PUT", page, "", page, true},
		{corsAll, "GET", "", "", "*", true},
		{corsAll, "GET", other, "", "*", true},
	}
}

// Pages read the answers of all three services by the account's rules, under the primary and the secondary name, at the
// ports of both locations and through the gateway: what exists, what does not, and what is refused (protocol/blob.md 20).
// No name of a header between front ends reaches them.
//
// Capability: Clients: Service properties and CORS.
func TestCORSAtEveryPort(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	ports := map[string]Ports{"the gateway": c.gateway, "the primary": c.ports[North], "the secondary": c.ports[South]}
	clients := map[string]*rest.Client{}
	for name, at := range ports {
		hc := &http.Client{Transport: &http.Transport{}}
		t.Cleanup(hc.CloseIdleConnections)
		for suffix, secondary := range map[string]bool{"": false, "-secondary": true} {
			clients[name+suffix] = rest.NewPathStyleOf(hc, "northacct", at.Base, secondary)
			clients[name+suffix].Key = key64
		}
	}
	rules := ""
	for _, row := range corsRows() {
		for _, s := range []geo.Service{geo.Blob, geo.Queue, geo.Table} {
			if row.rules != rules || row.rules == "" {
				setRules(t, clients["the gateway"], s, row.rules)
			}
			for name, client := range clients {
				if rules != row.rules && strings.HasSuffix(name, "-secondary") {
					eventually(t, "rules at "+name, func() bool {
						a, err := client.Do(t.Context(), s, rest.Request{Method: http.MethodGet, Path: "/", Query: "restype=service&comp=properties"})
						return err == nil && strings.Contains(string(a.Body), "<Cors>"+row.rules+"</Cors>")
					})
				}
				for what, r := range corsRequests(s, row, name) {
					signer := *client
					if what == "a wrong signature" {
						signer.Key = []byte("wrong")
					}
					a, err := signer.Do(t.Context(), s, r)
					require.NoError(t, err)
					require.Equal(t, corsStatus[what], a.Status, "%s at %s: %+v %v", s, name, row, a)
					requireRow(t, s.String()+" at "+name+": "+what, row, a)
				}
			}
		}
		rules = row.rules
	}
}

// setRules sets the CORS rules of a service.
func setRules(t *testing.T, c *rest.Client, s geo.Service, rules string) {
	t.Helper()
	a, err := c.Do(t.Context(), s, rest.Request{
		Method: http.MethodPut, Path: "/", Query: "restype=service&comp=properties",
		Body: []byte("<StorageServiceProperties><Cors>" + rules + "</Cors></StorageServiceProperties>"),
	})
	require.NoError(t, err)
	require.True(t, a.OK(), a)
}

// corsStatus are the statuses of the answers to corsRequests.
var corsStatus = map[string]int{"a wrong signature": 403, "a write of the secondary": 403, "properties": 200, "missing": 404}

// corsRequests are requests of a row by what their answers are.
func corsRequests(s geo.Service, row corsRow, at string) map[string]rest.Request {
	header := map[string]string{}
	if row.origin != "" {
		header["Origin"] = row.origin
	}
	missing, query := map[geo.Service]string{geo.Blob: "/none/blob", geo.Queue: "/none", geo.Table: "/none()"}[s], ""
	if s == geo.Queue {
		query = "comp=metadata"
	}
	out := map[string]rest.Request{"a wrong signature": {Method: row.method, Path: missing, Query: query, Header: header}}
	if row.method != http.MethodGet {
		if strings.HasSuffix(at, "-secondary") {
			out["a write of the secondary"] = rest.Request{Method: row.method, Path: missing, Query: query, Header: header}
		}
		return out
	}
	out["properties"] = rest.Request{Method: row.method, Path: "/", Query: "restype=service&comp=properties", Header: header}
	out["missing"] = rest.Request{Method: row.method, Path: missing, Query: query, Header: header}
	return out
}

func requireRow(t *testing.T, what string, row corsRow, a rest.Answer) {
	t.Helper()
	require.Equal(t, row.vary, a.Header.Get("Vary"), "%s: %+v %v", what, row, a)
	require.Equal(t, row.allows, a.Header.Get("Access-Control-Allow-Origin"), "%s: %+v %v", what, row, a)
	exposed := a.Header.Get("Access-Control-Expose-Headers")
	require.Equal(t, row.exposes, strings.Contains(exposed, "X-Ms-Request-Id"), "%s: %+v %v", what, row, exposed)
	require.NotContains(t, exposed, "Antipode", "%s: %+v", what, row)
	require.NotContains(t, exposed, "Access-Control", "%s: %+v", what, row)
}

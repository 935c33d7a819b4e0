package auth

import (
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
)

// Who holds a signature can send what they like beside it, in place of a part of it and without that: the request is
// refused, or may do what was signed. On other resources it is refused.
//
// Capability: Clients: Shared access signatures.
func TestUnsignedWidensNoSAS(t *testing.T) {
	names := append(append([]string{"versionid", "comp", "x"}, fieldNames[:fieldSig]...), "skoid", "ſig")
	values := []string{
		"", "r", "rwdlacup", "raud", "raup", "b", "c", "bqt", "sco", "2024-01-02T03:04:05Z", "2034-01-02T03:04:05Z", "2999-01-01", "p", "a", "m", "T",
		"mycontainer", "https", "https,http", "10.0.0.1", "0.0.0.0-255.255.255.255", "2012-02-12", "2013-08-15", "2015-02-21", "2015-04-05",
		"2018-11-09", "2020-12-06", "2024-08-04", "text/html", "+", " ", "\U00010000", "\ue000",
	}
	operations := map[geo.Service][]string{
		geo.Blob:  {"GetBlob", "PutBlob", "DeleteBlob", "ListBlobs", "SetContainerACL"},
		geo.Queue: {"PeekMessages", "PutMessage", "GetMessages", "ClearMessages", "SetQueueACL"},
		geo.Table: {"QueryEntities", "InsertEntity", "UpdateEntity", "DeleteEntity", "QueryTables", "SetTableACL"},
	}
	tokens := []struct {
		service geo.Service
		query   string
	}{
		{geo.Blob, "sv=2024-08-04&sr=c&sp=r&se=2034-01-02"},
		{geo.Blob, "sv=2024-08-04&sr=b&sp=c&se=2034-01-02&rsct=text/plain"},
		{geo.Blob, "sv=2012-02-12&sr=c&sp=r&se=2034-01-02"},
		{geo.Blob, "sv=2013-08-15&sr=b&sp=r&se=2034-01-02"},
		{geo.Blob, "sr=c&sp=r&st=2024-06-01&se=2024-06-01T00:30Z"},
		{geo.Blob, "sv=2019-02-02&ss=b&srt=o&sp=r&se=2034-01-02"},
		{geo.Queue, "sv=2020-02-10&sp=r&se=2034-01-02&sip=10.0.0.5"},
		{geo.Queue, "sv=2014-02-14&sp=a&se=2034-01-02"},
		{geo.Table, "sv=2019-02-02&tn=T&sp=r&se=2034-01-02&spk=a&srk=b&epk=m"},
		{geo.Table, "sv=2012-02-12&tn=t&sp=u&se=2034-01-02&epk=m"},
		{geo.Table, "sv=2024-08-04&ss=t&srt=o&sp=a&se=2034-01-02&st=2024-01-01"},
		{geo.Table, "sv=2015-04-05&tn=t&sp=raud&se=2024-01-01"},
	}
	at, err := time.Parse(time.RFC3339, sasNow)
	require.NoError(t, err)
	verifier, key := testVerifier(), testKey(t)
	permitted := func(s geo.Service, op string, on Resource, q protocol.Query) *protocol.Access {
		target := protocol.Target{Service: s, Account: testAccount}
		sas, err := verifier.VerifySAS(target, on, q, Keys{Key1: key})
		if err != nil {
			wantFailed(t, err, "")
			return nil
		}
		a, err := sas.Permit(Use{
			Request: &protocol.Request{
				HTTP: httptest.NewRequest("GET", "/", nil), Target: target, Query: q, At: at, Scheme: "http", ClientAddr: netip.MustParseAddrPort("10.0.0.5:1"),
			},
			Operation: operation.Named(s, op),
		})
		if err != nil {
			return nil
		}
		a.Table = strings.ToLower(a.Table)
		return a
	}
	for _, token := range tokens {
		on := map[geo.Service]Resource{geo.Blob: {"mycontainer", "b"}, geo.Queue: {"q", ""}, geo.Table: {"t", ""}}[token.service]
		signed := signedQuery(t, token.service, on, token.query)
		for _, op := range operations[token.service] {
			want := permitted(token.service, op, on, signed)
			for _, other := range []Resource{{"other", on.Blob}, {"other/" + on.Container, on.Blob}, {on.Container, "other"}, {on.Container, ""}, {"", on.Blob}} {
				wide := strings.Contains(token.query, "ss=") || on.Container == other.Container && (token.service != geo.Blob || strings.Contains(token.query, "sr=c")) ||
					token.service == geo.Table && other.Container == ""
				got := permitted(token.service, op, other, signed)
				require.True(t, got == nil || wide, "%s by %s on %v", op, token.query, other)
			}
			for _, name := range names {
				for _, value := range values {
					with := protocol.Param{Name: name, Value: value}
					changes := []protocol.Query{append(slices.Clone(signed), with), append(protocol.Query{with}, signed...)}
					if i := slices.IndexFunc(signed, func(p protocol.Param) bool { return p.Name == name }); i >= 0 {
						changes = append(changes, slices.Replace(slices.Clone(signed), i, i+1, with), slices.Delete(slices.Clone(signed), i, i+1))
					}
					for _, q := range changes {
						if _, err := protocol.ParseQuery(rawOf(q)); err != nil {
							continue // A name twice is refused before the signature is read.
						}
						if got := permitted(token.service, op, on, q); got != nil {
							require.Equal(t, want, got, "%s by %v", op, q)
						}
					}
				}
			}
		}
	}
}

// rawOf is the query as it is sent.
func rawOf(q protocol.Query) string {
	var out []string
	for _, p := range q {
		out = append(out, url.QueryEscape(p.Name)+"="+url.QueryEscape(p.Value))
	}
	return strings.Join(out, "&")
}

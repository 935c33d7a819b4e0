package queues

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
)

// The operation index of protocol/queue.md 5, and what fits none of it. A GET of messages
// writes unless it peeks.
func TestLookup(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]struct {
		name   string
		effect operation.Effect
	}{
		"GET /?comp=list":                {"ListQueues", operation.Reads},
		"PUT /q":                         {"CreateQueue", operation.Writes},
		"DELETE /q":                      {"DeleteQueue", operation.Writes},
		"GET /q":                         {"Unknown", operation.Writes},
		"HEAD /q?comp=metadata":          {"GetQueueMetadata", operation.Reads},
		"PUT /q?comp=metadata":           {"SetQueueMetadata", operation.Writes},
		"GET /q?comp=acl":                {"GetQueueACL", operation.Reads},
		"PUT /q?COMP=ACL":                {"SetQueueACL", operation.Writes},
		"POST /q?comp=acl":               {"Unknown", operation.Writes},
		"GET /q?comp=other":              {"Unknown", operation.Writes},
		"POST /q/messages":               {"PutMessage", operation.Writes},
		"GET /q/messages":                {"GetMessages", operation.Writes},
		"GET /q/messages/":               {"GetMessages", operation.Writes},
		"GET /q/Messages?peekonly=false": {"GetMessages", operation.Writes},
		"GET /q/messages?peekonly":       {"GetMessages", operation.Writes},
		"GET /q/messages?PeekOnly=True":  {"PeekMessages", operation.Reads},
		"HEAD /q/messages?peekonly=true": {"Unknown", operation.Writes},
		"DELETE /q/messages":             {"ClearMessages", operation.Writes},
		"DELETE /q/messages/id":          {"DeleteMessage", operation.Writes},
		"PUT /q/messages/id":             {"UpdateMessage", operation.Writes},
		"GET /q/messages/id":             {"Unknown", operation.Writes},
		"GET /q/mess%61ges":              {"Unknown", operation.Writes},
		"PATCH /q/messages":              {"Unknown", operation.Writes},
	} {
		method, target, _ := strings.Cut(request, " ")
		path, rawQuery, _ := strings.Cut(target, "?")
		query, err := protocol.ParseQuery(rawQuery)
		require.NoError(t, err)
		r := &protocol.Request{HTTP: httptest.NewRequest(method, "/", nil), Query: query}
		r.Service, r.Resource = geo.Queue, path
		m := Lookup(r)
		require.Equal(t, want.name, m.Name, request)
		require.Equal(t, want.effect, m.Effect, request)
	}
}

// Every row of the table that is built has a handler, and every handler a row. The calls of
// the service itself are package accounts'.
func TestHandlersAreTheBuiltRows(t *testing.T) {
	t.Parallel()
	built := map[string]bool{}
	for _, o := range operation.Of(geo.Queue) {
		if o.Built && o.On != operation.Service {
			built[o.Name] = true
			require.NotNil(t, handlers[o.Name], o.Name)
		}
	}
	require.Len(t, handlers, len(built))
}

// Queues know no conditions: headers of such, well-formed or not, change nothing.
func TestConditionsAreIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, http.StatusCreated, r.do("PUT", "/conditions", "").status)
	for _, value := range []string{"", "null", "yesterday", `"a"`, "*"} {
		none := []string{"If-Match", value, "If-None-Match", value, "If-Modified-Since", value, "If-Unmodified-Since", value}
		require.Equal(t, http.StatusNoContent, r.do("PUT", "/conditions?comp=metadata", "", none...).status)
		require.Equal(t, http.StatusOK, r.do("GET", "/conditions?comp=metadata", "", none...).status)
		require.Equal(t, http.StatusOK, r.do("GET", "/conditions/messages", "", none...).status)
		require.Equal(t, http.StatusNoContent, r.do("DELETE", "/conditions/messages", "", none...).status)
	}
}

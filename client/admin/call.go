package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"antipode/geo"
)

// Call is an operator call: how it is asked over HTTP, and with which documents. calls.go has all of them; the package
// server/operator carries them out.
type Call[Req, Resp any] struct{ Route }

// Route is what of a call does not depend on its documents.
type Route struct {
	// Name is on the wire between the processes of a location: never rename one.
	Name string
	// Method and Path are those of the request. Path has the fields of At in braces: {account}, {location}, {node}, {range}.
	// A GET has its question as a query, a POST as a body of JSON.
	Method, Path string
	// Former is the path of the version before, where that was another one. Ports answer both, and Call.Do takes this one, which a
	// port of that version answers, too.
	Former string
	// Token: the call shows secrets or what clients stored, or changes something, and needs the admin token.
	Token bool
}

// Reads reports whether the call changes nothing.
func (r Route) Reads() bool { return r.Method == http.MethodGet }

// At is what the path of a call names.
type At struct {
	Account  geo.Account  `json:"account,omitempty"`
	Location geo.Location `json:"location,omitempty"`
	// Node is the name of a node: see NodeName.
	Node  string      `json:"node,omitempty"`
	Range geo.RangeID `json:"range,omitempty"`
}

// CodeOtherVersion: nodes of one location run two versions, and the one that was to do something does not know the call.
const CodeOtherVersion = "OtherVersion"

// None is the question of a call that has none.
type None struct{}

// Do makes the call. Errors are those of Client.
func (k Call[Req, Resp]) Do(ctx context.Context, c *Client, at At, in Req) (Resp, error) {
	path, body := k.path(at), any(in)
	switch {
	case body == any(None{}):
		body = nil
	case k.Method == http.MethodGet:
		path, body = path+query(body), nil
	}
	return fetch[Resp](ctx, c, k.Method, path, body)
}

// path is the path of the request.
func (r Route) path(at At) string {
	return strings.NewReplacer(
		"{account}", url.PathEscape(string(at.Account)), "{location}", url.PathEscape(string(at.Location)),
		"{node}", url.PathEscape(at.Node), "{range}", strconv.FormatUint(uint64(at.Range), 10),
	).Replace(cmp.Or(r.Former, r.Path))
}

// query writes a question as a query: its fields by their names in JSON, all of them texts there.
func query(in any) string {
	b, err := json.Marshal(in)
	fields := map[string]string{}
	if err != nil || json.Unmarshal(b, &fields) != nil || len(fields) == 0 {
		return ""
	}
	v := url.Values{}
	for name, text := range fields {
		v.Set(name, text)
	}
	return "?" + v.Encode()
}

// ParseQuery reads what Call.Do writes as a query. Parts that the question does not have are passed over.
func ParseQuery(v url.Values, into any) error {
	fields, of := map[string]string{}, reflect.TypeOf(into).Elem()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if text := v.Get(name); text != "" {
			fields[name] = text
		}
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// QuerySeconds are seconds in a query, where all is text.
type QuerySeconds float64

// MarshalText implements encoding.TextMarshaler.
func (s QuerySeconds) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(s), 'f', -1, 64), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *QuerySeconds) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fmt.Errorf("%q is no number of seconds", text)
	}
	*s = QuerySeconds(f)
	return nil
}

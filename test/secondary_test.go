package test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/rest"
)

// testSecondaryRefuses sends every write of the tables and blobs built so far to
// -secondary, of what exists and of what does not: each is 403 with the
// protocol's code, and nothing has changed at either location.
func testSecondaryRefuses(t *testing.T, p *devproc.Process) {
	ctx, cancel := contextFor(t, time.Minute)
	defer cancel()
	first, second := p.Client(0, false), p.Client(0, true)
	require.NoError(t, first.CreateTable(ctx, "refused"))
	require.NoError(t, first.CreateContainer(ctx, "refused"))
	e := rest.Entity{"PartitionKey": "p", "RowKey": "r", "V": "kept"}
	inserted, err := first.Insert(ctx, "refused", e)
	require.NoError(t, err)
	require.True(t, inserted.OK(), "%v", inserted)
	put, err := first.PutBlob(ctx, "refused", "b", []byte("kept"))
	require.NoError(t, err)
	require.True(t, put.OK(), "%v", put)
	eventually(t, arriveWait, "values at -secondary", func(ctx context.Context) error {
		_, a, err := second.GetEntity(ctx, "refused", "p", "r")
		if err := sameOrWait(err, a.Status, http.StatusOK); err != nil {
			return err
		}
		b, err := second.GetBlob(ctx, "refused", "b")
		return sameOrWait(err, b.Status, http.StatusOK)
	})

	other := rest.Entity{"PartitionKey": "p", "RowKey": "other", "V": "new"}
	e["V"] = "changed"
	writes := map[string]func(context.Context) (rest.Answer, error){
		"insert new":       func(ctx context.Context) (rest.Answer, error) { return second.Insert(ctx, "refused", other) },
		"insert existing":  func(ctx context.Context) (rest.Answer, error) { return second.Insert(ctx, "refused", e) },
		"insert, no table": func(ctx context.Context) (rest.Answer, error) { return second.Insert(ctx, "nosuch", e) },
		"merge":            func(ctx context.Context) (rest.Answer, error) { return second.Merge(ctx, "refused", "*", e) },
		"replace":          func(ctx context.Context) (rest.Answer, error) { return second.Replace(ctx, "refused", "*", e) },
		"upsert":           func(ctx context.Context) (rest.Answer, error) { return second.Replace(ctx, "refused", "", other) },
		"delete entity": func(ctx context.Context) (rest.Answer, error) {
			return second.DeleteEntity(ctx, "refused", "*", "p", "r")
		},
		"put blob": func(ctx context.Context) (rest.Answer, error) {
			return second.PutBlob(ctx, "refused", "b", []byte("new"))
		},
		"delete blob": func(ctx context.Context) (rest.Answer, error) { return second.DeleteBlob(ctx, "refused", "b") },
		"put 4 MiB": func(ctx context.Context) (rest.Answer, error) {
			return second.PutBlob(ctx, "refused", "c", content(4<<20))
		},
		"create table": func(ctx context.Context) (rest.Answer, error) {
			return second.Do(ctx, geo.Table, rest.Request{Method: http.MethodPost, Path: "/Tables", Header: map[string]string{"Content-Type": "application/json"}, Body: []byte(`{"TableName":"fresh"}`)})
		},
		"delete table": func(ctx context.Context) (rest.Answer, error) {
			return second.Do(ctx, geo.Table, rest.Request{Method: http.MethodDelete, Path: "/Tables('refused')"})
		},
		"create container": func(ctx context.Context) (rest.Answer, error) {
			return second.Do(ctx, geo.Blob, rest.Request{Method: http.MethodPut, Path: "/fresh", Query: "restype=container"})
		},
		"delete container": func(ctx context.Context) (rest.Answer, error) {
			return second.Do(ctx, geo.Blob, rest.Request{Method: http.MethodDelete, Path: "/refused", Query: "restype=container"})
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			a, err := write(ctx)
			require.NoError(t, err)
			require.Equal(t, http.StatusForbidden, a.Status, "%v", a)
			require.Equal(t, "InsufficientAccountPermissions", a.Code)
			require.Contains(t, string(a.Body), "Write operations are not allowed.")
		})
	}
	requireUnchanged(ctx, t, first, inserted, put)
	requireUnchanged(ctx, t, second, inserted, put)
}

func requireUnchanged(ctx context.Context, t *testing.T, c *rest.Client, inserted, put rest.Answer) {
	t.Helper()
	e, a, err := c.GetEntity(ctx, "refused", "p", "r")
	require.NoError(t, err)
	require.Equal(t, "kept", e["V"])
	require.Equal(t, inserted.Header.Get("ETag"), a.Header.Get("ETag"))
	_, a, err = c.GetEntity(ctx, "refused", "p", "other")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, a.Status)
	b, err := c.GetBlob(ctx, "refused", "b")
	require.NoError(t, err)
	require.Equal(t, "kept", string(b.Body))
	require.Equal(t, put.Header.Get("ETag"), b.Header.Get("ETag"))
}

// testCredentials sends wrong credentials to both endpoints. On -secondary the
// signature is checked before the write: a stranger learns nothing.
func testCredentials(t *testing.T, p *devproc.Process) {
	ctx, cancel := contextFor(t, time.Minute)
	defer cancel()
	wrong := func(c *rest.Client) *rest.Client { c.Key = []byte("not the key"); return c }
	stranger := func(c *rest.Client) *rest.Client { c.Account = "somebodyelse"; return c }
	for name, c := range map[string]*rest.Client{
		"wrong key":                wrong(p.Client(0, false)),
		"wrong key, -secondary":    wrong(p.Client(0, true)),
		"other account":            stranger(p.Client(0, false)),
		"other account -secondary": stranger(p.Client(0, true)),
	} {
		for _, s := range []geo.Service{geo.Blob, geo.Table} {
			a, err := c.Do(ctx, s, rest.Request{Method: http.MethodPut, Path: "/credentials", Query: "restype=container"})
			require.NoError(t, err)
			require.Equal(t, http.StatusForbidden, a.Status, "%s, %v: %v", name, s, a)
			require.Equal(t, "AuthenticationFailed", a.Code, "%s, %v: %v", name, s, a)
		}
	}
}
